package jsonblob

import (
	"bytes"
	"encoding/base64"
	"io"
	"strings"
	"testing"
)

// attachmentBody is the request that creates an attachment of n bytes.
func attachmentBody(n int) []byte {
	content := make([]byte, n)
	for i := range content {
		content[i] = byte(i * 7)
	}
	return []byte(`{"ids":[35],"is_patch":true,"comment":"A comment","summary":"Test","content_type":"text/plain","data":"` +
		base64.StdEncoding.EncodeToString(content) + `","file_name":"t.patch"}`)
}

// benchSizes are sizes of content.
var benchSizes = []struct {
	name string
	size int
}{{"1KB", 1 << 10}, {"1MB", 1 << 20}, {"10MB", 10 << 20}}

// benchMemories are values of Limits.BlobMemory: all content stays in memory or, beyond the default, in a file.
var benchMemories = []struct {
	name   string
	memory int64
}{{"memory", 1 << 30}, {"file", 0}}

func BenchmarkSplit(b *testing.B) {
	for _, size := range benchSizes {
		body := attachmentBody(size.size)
		for _, place := range benchMemories {
			b.Run(size.name+"/"+place.name, func(b *testing.B) {
				benchmarkSplit(b, body, SplitOptions{Limits: Limits{BlobMemory: place.memory}})
			})
		}
	}
	for name, body := range map[string]string{
		"breaks": `{"data":"` + wrap(strings.Repeat("QUJDREVGR0hJSktM", 1<<16), 76, `\n`) + `"}`,
		"text":   `["` + strings.Repeat("Some words, and no payload. ", 30000) + `"]`,
		"flags":  `[` + strings.Repeat(`{"id":12,"name":"review","is_active":true,"values":["X","?","+","-"]},`, 3000) + `1]`,
	} {
		b.Run(name, func(b *testing.B) { benchmarkSplit(b, []byte(body), SplitOptions{}) })
	}
}

func benchmarkSplit(b *testing.B, body []byte, opts SplitOptions) {
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	skeleton := make([]byte, 0, 1<<20)
	opts.Dir = b.TempDir()
	for b.Loop() {
		_, blobs, err := Split(skeleton, struct{ io.Reader }{bytes.NewReader(body)}, opts)
		if err != nil {
			b.Fatal(err)
		}
		if err := CloseBlobs(blobs); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkJoin reads a document as net/http does when it sends a request: with a buffer of 32 KiB.
func BenchmarkJoin(b *testing.B) {
	for _, size := range benchSizes {
		body := attachmentBody(size.size)
		for _, place := range benchMemories {
			b.Run(size.name+"/"+place.name, func(b *testing.B) {
				opts := SplitOptions{Limits: Limits{BlobMemory: place.memory}, Dir: b.TempDir()}
				skeleton, blobs, err := Split(nil, bytes.NewReader(body), opts)
				if err != nil {
					b.Fatal(err)
				}
				defer CloseBlobs(blobs)
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				buffer := make([]byte, 32<<10)
				for b.Loop() {
					joined, err := Join(skeleton, blobs)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{joined.Open()}, buffer); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
