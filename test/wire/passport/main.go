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
	var text bytes.Buffer
	err := facade.WritePassport(context.Background(), &text, *recordings)
	if err == nil {
		err = os.WriteFile(*page, text.Bytes(), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "passport:", err)
		os.Exit(1)
	}
}
