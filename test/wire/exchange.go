// Package wire holds recorded exchanges with real trackers and compares answers with the recorded ones by the rules of
// tracker-behaviour.md section 13. How recordings are read and their requests sent is the business of upstream/recording.
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"portico/upstream/recording"
)

// Exchange is one recorded request with its answer.
type Exchange = recording.Exchange

// Request is a request as it was sent.
type Request = recording.Request

// Response is an answer.
type Response = recording.Response

// Load reads a file of recordings, one JSON object a line.
func Load(path string) ([]Exchange, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening recordings: %w", err)
	}
	defer f.Close()
	var exchanges []Exchange
	for in := recording.NewReader(f); ; {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			return exchanges, nil
		}
		if err != nil {
			return nil, err
		}
		exchanges = append(exchanges, e)
	}
}

// Send makes a request over a connection of its own, exactly as recorded.
func Send(ctx context.Context, baseURL string, r Request) (Response, error) {
	return recording.Send(ctx, baseURL, r, 256<<20)
}
