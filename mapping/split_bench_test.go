package mapping

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
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

func BenchmarkSplit(b *testing.B) {
	big := attachmentBody(12 << 20)
	wrapped := []byte(`{"data":"` + wrap(strings.Repeat("QUJDREVGR0hJSktM", 1<<20), 76, `\n`) + `"}`)
	for _, c := range []struct {
		name   string
		body   []byte
		memory int64
	}{
		{"memory", big, 1 << 30},
		{"file", big, 0},
		{"breaks", wrapped, 0},
		{"small", attachmentBody(300), 0},
		{"text", []byte(`["` + strings.Repeat("Some words, and no payload. ", 30000) + `"]`), 0},
		{"flags", []byte(`[` + strings.Repeat(`{"id":12,"name":"review","is_active":true,"values":["X","?","+","-"]},`, 3000) + `1]`), 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			skeleton := make([]byte, 0, 2<<20)
			opts := SplitOptions{Limits: Limits{BlobMemory: c.memory}, Dir: b.TempDir()}
			for b.Loop() {
				_, blobs, err := Split(skeleton, bytes.NewReader(c.body), opts)
				if err != nil {
					b.Fatal(err)
				}
				if err := CloseBlobs(blobs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSplitPeer is what Split replaces.
func BenchmarkSplitPeer(b *testing.B) {
	body := attachmentBody(12 << 20)
	for name, decode := range map[string]func() error{
		"raw":   func() error { var v map[string]json.RawMessage; return json.Unmarshal(body, &v) },
		"bytes": func() error { var v struct{ Data []byte }; return json.Unmarshal(body, &v) },
		"text":  func() error { var v struct{ Data string }; return json.Unmarshal(body, &v) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkJoin(b *testing.B) {
	for name, memory := range map[string]int64{"memory": 1 << 30, "file": 0} {
		b.Run(name, func(b *testing.B) {
			body := attachmentBody(12 << 20)
			skeleton, blobs, err := Split(nil, bytes.NewReader(body), SplitOptions{Limits: Limits{BlobMemory: memory}})
			if err != nil {
				b.Fatal(err)
			}
			defer CloseBlobs(blobs)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				joined, err := Join(skeleton, blobs)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := joined.WriteTo(struct{ io.Writer }{io.Discard}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
