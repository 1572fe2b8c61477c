// Command passport replays the recordings through Portico and writes docs/evidence/COMPATIBILITY.md. Run it from the root of the module.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"

	"portico/test/wire/facade"
)

func main() {
	recordings := flag.String("recordings", "test/wire/testdata", "the folder with the recorded exchanges")
	page := flag.String("out", "docs/evidence/COMPATIBILITY.md", "the page to write")
	flag.Parse()
	if err := write(*recordings, *page); err != nil {
		fmt.Fprintln(os.Stderr, "passport:", err)
		os.Exit(1)
	}
}

func write(recordings, page string) error {
	var all []facade.Replayed
	for _, tracker := range facade.Trackers() {
		replayed, err := tracker.Replay(context.Background(), recordings)
		if err != nil {
			return err
		}
		all = append(all, replayed)
	}
	var text bytes.Buffer
	if err := facade.WritePassport(&text, all); err != nil {
		return err
	}
	return os.WriteFile(page, text.Bytes(), 0o644)
}
