package faults

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"time"
)

// What follows are ways of a wire to fail. Each takes over at the begin of a request and tells whether the connection
// may go on.

// acceptAndClose and acceptAndReset end a connection before a byte has passed.
func acceptAndClose(*crossing) bool { return true }

func acceptAndReset(x *crossing) bool {
	reset(x.conn)
	return true
}

// blackhole takes everything and gives nothing.
func blackhole(x *crossing) bool {
	x.hold()
	return false
}

// blackholeAnswer carries the request out and keeps the answer.
func blackholeAnswer(x *crossing) bool {
	if x.answer(x.request()) != nil {
		x.hold()
	}
	return false
}

// toTracker reads a request and opens a connection to the tracker for it, which ends with do.
func toTracker(do func(x *crossing, request []byte, conn net.Conn) bool) func(*crossing) bool {
	return func(x *crossing) bool {
		request := x.request()
		conn := x.dial()
		if request == nil || conn == nil {
			return false
		}
		defer x.wire.drop(conn)
		return do(x, request, conn)
	}
}

// resetUp resets both sides after a part of the request.
func resetUp(x *crossing, request []byte, conn net.Conn) bool {
	_, _ = conn.Write(request[:x.wire.below(len(request))])
	reset(conn)
	reset(x.conn)
	return false
}

// resetUnread resets after some bytes of the request, the rest of which is unread.
func resetUnread(x *crossing) bool {
	_, _ = x.conn.Read(make([]byte, 1+x.wire.below(100)))
	reset(x.conn)
	return false
}

// cutAnswer carries the request out and gives a part of the answer to end.
func cutAnswer(end func(*crossing)) func(*crossing) bool {
	return func(x *crossing) bool {
		if answer := x.answer(x.request()); answer != nil {
			x.say(answer[:x.wire.below(len(answer))])
			end(x)
		}
		return false
	}
}

// finUp ends the sending side toward the tracker before the answer, as a client does that has nothing more to say.
func finUp(x *crossing, request []byte, conn net.Conn) bool {
	if _, err := conn.Write(request); err != nil {
		return false
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	answer := readAnswer(conn)
	return answer != nil && x.say(answer)
}

// halfRequest gives the tracker a part of the request and a FIN, and passes its answer on.
func halfRequest(x *crossing, request []byte, conn net.Conn) bool {
	finUp(x, request[:x.wire.below(len(request))], conn)
	return false
}

// inPieces sends both ways in pieces with pauses: single bytes, or a narrow band.
func inPieces(size, most int, pause time.Duration) func(*crossing) bool {
	return toTracker(func(x *crossing, request []byte, conn net.Conn) bool {
		if !pieces(conn, request, size, most, pause) {
			return false
		}
		answer := readAnswer(conn)
		return answer != nil && pieces(x.conn, answer, size, most, pause)
	})
}

// pieces writes up to most pieces, then the rest at once.
func pieces(conn net.Conn, data []byte, size, most int, pause time.Duration) bool {
	for range most {
		if len(data) <= size {
			break
		}
		if _, err := conn.Write(data[:size]); err != nil {
			return false
		}
		data = data[size:]
		time.Sleep(pause)
	}
	_, err := conn.Write(data)
	return err == nil
}

// late delays the request and the answer.
func late(x *crossing) bool {
	request := x.request()
	if request == nil {
		return false
	}
	time.Sleep(time.Duration(x.wire.below(700)) * time.Millisecond)
	answer := x.answer(request)
	time.Sleep(time.Duration(x.wire.below(700)) * time.Millisecond)
	return answer != nil && x.say(answer)
}

// spoken answers with bytes of its own, with or without carrying the request out.
func spoken(executed bool, say string) func(*crossing) bool {
	return func(x *crossing) bool {
		request := x.request()
		if request == nil {
			return false
		}
		if executed {
			x.answer(request)
		}
		x.say([]byte(say))
		x.finish()
		return false
	}
}

// twoAnswers gives the answer twice in one piece. A second one that comes after the next request has been sent could not
// be told from that request's own by a client.
func twoAnswers(x *crossing) bool {
	answer := x.answer(x.request())
	return answer != nil && x.say(bytes.Repeat(answer, 2))
}

// earlyAnswer refuses before the request has been read, and reads none of its body.
func earlyAnswer(x *crossing) bool {
	if _, err := readHead(x.in); err != nil {
		return false
	}
	x.say(withLength("400 Bad Request", "Connection: close\r\n", []byte(`{"error":true,"code":32000,"message":"too early","documentation":"d"}`)))
	x.finish()
	return false
}

// keptDrop ends a kept connection when its next request has come: before it is carried out or after.
func keptDrop(executed bool) func(*crossing) bool {
	return func(x *crossing) bool {
		if x.met == 0 {
			return x.pass()
		}
		if request := x.request(); executed {
			x.answer(request)
		}
		reset(x.conn)
		return false
	}
}

// idle408 says goodbye on an idle connection, as web servers do.
func idle408(x *crossing) bool {
	if !x.pass() {
		return false
	}
	time.Sleep(time.Duration(x.wire.below(4)) * time.Millisecond)
	x.say(withLength("408 Request Timeout", "Connection: close\r\n", []byte(`{"error":true,"code":1,"message":"idle"}`)))
	return false
}

// reshaped carries the request out and gives its answer in another form, then ends the connection.
func reshaped(form func(head string, body []byte) []byte) func(*crossing) bool {
	return func(x *crossing) bool {
		if answer := x.answer(x.request()); answer != nil {
			x.say(form(split(answer)))
			x.finish()
		}
		return false
	}
}

// interim puts many answers before the answer.
func interim(head string, body []byte) []byte {
	before := strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n", 40)
	return append([]byte(before+head), body...)
}

// unframed is an answer without a length, which ends with the connection, in the middle.
func unframed(_ string, body []byte) []byte {
	return append([]byte("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"), body[:len(body)/2]...)
}

// chunked spoils chunks: a bad size, or no end.
func chunked(after string) func(string, []byte) []byte {
	return func(_ string, body []byte) []byte {
		half := len(body) / 2
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s%s", half, body[:half], after)
	}
}

// withStatus gives the answer's body under another status.
func withStatus(line string) func(string, []byte) []byte {
	return func(_ string, body []byte) []byte { return withLength(line, "", body) }
}

// withBody gives another body under the answer's status.
func withBody(text string) func(string, []byte) []byte {
	return func(head string, _ []byte) []byte {
		status, _, _ := strings.Cut(strings.TrimPrefix(head, "HTTP/1.1 "), "\r\n")
		return withLength(status, "", []byte(text))
	}
}
