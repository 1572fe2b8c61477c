// Command passport replays the recordings through Portico and writes docs/COMPATIBILITY.md. Run it from the root of the module.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"portico/test/wire"
	"portico/test/wire/facade"
)

func main() {
	recordings := flag.String("recordings", "test/wire/testdata/bugzilla-5.2.jsonl", "the recorded exchanges")
	page := flag.String("out", "docs/COMPATIBILITY.md", "the page to write")
	flag.Parse()
	if err := run(context.Background(), *recordings, *page); err != nil {
		fmt.Fprintln(os.Stderr, "passport:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, recordings, page string) error {
	exchanges, err := wire.Load(recordings)
	if err != nil {
		return err
	}
	house, err := facade.Open(nil)
	if err != nil {
		return err
	}
	results := house.Run(ctx, exchanges)
	if err := house.Close(); err != nil {
		return err
	}
	var text bytes.Buffer
	err = facade.WritePassport(&text, exchanges, results)
	return errors.Join(err, os.WriteFile(page, text.Bytes(), 0o644))
}
