package canary

import (
	"errors"
	"sync"

	"portico/upstream"
)

// errNoMore ends the copying of an answer. The client never sees it.
var errNoMore = errors.New("the answer is not kept any more")

// capture takes over what the client gets. The job goes to the workers when the
// client has all of it.
func (c *Canary) capture(j *job, answer upstream.Answer) {
	j.said = c.captureOptions(j.operation, false).spool(&c.disk)
	switch document := answer.Document; {
	case answer.Err != nil:
		reply, _ := failedReply(answer.Err) // refusal has judged the error
		if !c.hold(j, int64(len(reply.Body))) {
			c.abandon(j, DropMemory)
			return
		}
		j.clientReply = &reply
		c.enqueue(j)
	case len(document.Blobs()) > 0:
		reply, err := loadedReply(Reply{Status: statusOf(j.operation, document), Header: headersOf(j.operation, document)}, document)
		if err != nil || !c.hold(j, int64(len(reply.Body))) {
			c.abandon(j, DropMemory)
			return
		}
		j.clientReply = &reply
		c.enqueue(j)
	default:
		j.clientHeader, j.clientStatus = headersOf(j.operation, document), document.Status
		o := &overheard{canary: c, job: j, opening: true, wake: make(chan struct{}, 1)}
		document.Tee(o, o.done)
		o.opening = false
	}
}

// overheard copies a stream while the client reads it. A file is only ever written
// by a goroutine of its own: a slow disk costs a comparison and not the client.
type overheard struct {
	canary *Canary
	job    *job
	// opening is set while the document gives what it has in memory. That text never
	// changes, so it is kept without a copy; often it is all there is.
	opening bool
	first   []byte

	mu     sync.Mutex
	buffer []byte // what came since then and is in no file yet
	moving bool   // a goroutine takes the buffer
	ended  bool
	failed DropReason
	wake   chan struct{}
}

// Write implements io.Writer for Document.Tee. An error ends the copying only.
func (o *overheard) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == "" && !o.canary.memory.take(int64(len(p))) {
		o.failed = DropMemory
	}
	if o.failed != "" {
		return 0, errNoMore
	}
	o.job.held += int64(len(p))
	if o.opening && o.first == nil {
		o.first = p
		return len(p), nil
	}
	if o.buffer == nil {
		o.buffer = append(make([]byte, 0, len(o.first)+4*len(p)), o.first...)
	}
	o.buffer = append(o.buffer, p...)
	if !o.moving && len(o.buffer) > spoolMemory {
		o.moving = true
		if !o.canary.spawn(o.move) {
			o.moving, o.failed = false, DropClosed
		}
	}
	o.nudge()
	return len(p), nil
}

func (o *overheard) nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// done is called when the client's document is closed.
func (o *overheard) done(whole bool) {
	o.mu.Lock()
	o.ended = true
	if !whole && o.failed == "" {
		o.failed = DropUnread
	}
	moving := o.moving
	o.mu.Unlock()
	o.nudge()
	if !moving {
		o.keep()
		o.deliver()
	}
}

// keep leaves a short answer in memory.
func (o *overheard) keep() {
	text := o.buffer
	if text == nil {
		text = o.first
	}
	o.job.said.unread, o.job.said.size = text, int64(len(text))
}

// deliver hands the job on.
func (o *overheard) deliver() {
	o.mu.Lock()
	failed := o.failed
	o.mu.Unlock()
	if failed != "" {
		o.canary.abandon(o.job, failed)
		return
	}
	o.canary.enqueue(o.job)
}

// move brings a long answer into its spool.
func (o *overheard) move() {
	defer o.deliver()
	defer o.rescue()
	for {
		select {
		case <-o.wake:
		case <-o.canary.ctx.Done():
			o.fail(DropClosed)
			return
		}
		if o.moveOnce() {
			return
		}
	}
}

// rescue keeps a mistake in one answer from ending the process.
func (o *overheard) rescue() {
	if mistake := recover(); mistake != nil {
		o.canary.mistake(o.job.operation, mistake)
		o.fail(DropInternal)
	}
}

// moveOnce takes what has come since the last time, and gives true at the end.
func (o *overheard) moveOnce() bool {
	o.mu.Lock()
	chunk, ended, failed := o.buffer, o.ended, o.failed
	o.buffer = []byte{}
	o.job.held -= int64(len(chunk))
	o.mu.Unlock()
	defer o.canary.memory.give(int64(len(chunk)))
	if failed == "" && len(chunk) > 0 {
		if _, err := o.job.said.Write(chunk); err != nil {
			o.fail(spoolReason(err))
			return true
		}
	}
	return ended || failed != ""
}

func (o *overheard) fail(reason DropReason) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == "" {
		o.failed = reason
	}
}

// spoolReason tells why an answer could not be kept.
func spoolReason(err error) DropReason {
	if errors.Is(err, errSpoolFull) {
		return DropSpool
	}
	return DropSpoolFailed
}
