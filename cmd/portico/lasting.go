package main

import "portico/proxy"

// lasting is what outlives a house: it is handed from one to the next when the
// configuration is read again.
type lasting struct {
	// replays are remembered creates where there is no store for them.
	replays *proxy.Replays
}

func newLasting() *lasting { return &lasting{replays: proxy.NewReplays(nil, nil)} }
