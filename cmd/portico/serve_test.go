package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"portico/test/process"
	"portico/test/tracker"
)

// trusting is a client that trusts an authority and shows a certificate, if there is one.
func trusting(t *testing.T, ca *process.Authority, certFile, keyFile string) *http.Client {
	t.Helper()
	settings, err := config.TLSFiles{CAFile: ca.File, KeyPair: config.KeyPair{CertFile: certFile, KeyFile: keyFile}}.Client()
	must(t, err)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
}

// serveConfig runs portico serve with a configuration until the test ends.
func serveConfig(t *testing.T, file string, environ ...string) (clients, operators string) {
	t.Helper()
	environ = append([]string{"PORTICO_TIMEOUTS_REDIS=10s"}, environ...) // a busy machine is no Redis that fails
	cfg, problems := config.Load(nil, environ, file)
	if config.Fatal(problems) {
		t.Fatal(texts(problems))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var log bytes.Buffer
	started, ended := make(chan struct{}), make(chan error, 1)
	host := app.New(&log, cfg)
	host.Started = func(c, o *app.Listener, _ *app.Runtime) {
		clients, operators = c.Address(), o.Address()
		close(started)
	}
	go func() { ended <- host.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v\n%s", err, &log)
		}
	})
	select {
	case <-started:
		return clients, operators
	case err := <-ended:
		ended <- nil
		t.Fatalf("serve: %v\n%s", err, &log)
		return "", ""
	}
}

func TestListenersOverTLS(t *testing.T) {
	t.Parallel()
	behind := stub(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	ca, strangers := process.NewAuthority(t), process.NewAuthority(t)
	cert, key := ca.Issue(t, 2)
	mine, myKey := ca.Issue(t, 3)
	foreign, foreignKey := strangers.Issue(t, 4)
	const token = "sixteen bytes or more"
	file := writeFile(t, "c.yaml", "listen: 127.0.0.1:0\ntls: {cert_file: "+cert+", key_file: "+key+"}\n"+
		"admin: {listen: 127.0.0.1:0, token_env: TOKEN, tls: {cert_file: "+cert+", key_file: "+key+", client_ca_file: "+ca.File+"}}\n"+
		"trackers: {main: {url: '"+behind+"', dialect: bugzilla-5}}\n")
	clients, operators := serveConfig(t, file, "TOKEN="+token)
	anonymous, known, stranger := trusting(t, ca, "", ""), trusting(t, ca, mine, myKey), trusting(t, ca, foreign, foreignKey)
	for _, c := range []struct {
		name    string
		client  *http.Client
		address string
		header  []string
		want    string
	}{
		{"client", anonymous, "https://" + clients + "/rest/version", nil, "HTTP/1.1 200 OK"},
		{"client that does not know the authority", trusting(t, strangers, "", ""), "https://" + clients + "/", nil, "unknown authority"},
		{"client without TLS", anonymous, "http://" + clients + "/rest/version", nil, "HTTP/1.1 400 Bad Request"},
		{"health without anything", anonymous, "https://" + operators + "/livez", nil, "HTTP/1.1 200 OK"},
		{"readiness without anything", anonymous, "https://" + operators + "/readyz", nil, "HTTP/1.1 200 OK"},
		{"operator without anything", anonymous, "https://" + operators + "/metrics", nil, "401"},
		{"operator with the token", anonymous, "https://" + operators + "/metrics", []string{"Authorization", "Bearer " + token}, "HTTP/1.1 200 OK"},
		{"operator with another token", anonymous, "https://" + operators + "/status", []string{"Authorization", "Bearer nonsense"}, "401"},
		{"operator with a certificate", known, "https://" + operators + "/status", nil, "HTTP/1.1 200 OK"},
		{"operator with a stranger's certificate", stranger, "https://" + operators + "/status", nil, "tls:"},
		{"stranger's certificate and health", stranger, "https://" + operators + "/livez", nil, "tls:"},
	} {
		got := ""
		if response, err := sendBy(t, c.client, http.MethodGet, c.address, "", c.header...); err != nil {
			got = err.Error()
		} else {
			got = response.Proto + " " + response.Status
			_ = response.Body.Close()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	tokenFile := writeFile(t, "token", token+"\n")
	for name, args := range map[string][]string{
		"token":       {"--token-file", tokenFile},
		"certificate": {"--cert-file", mine, "--key-file", myKey},
	} {
		args = append([]string{"cache", "purge", "--admin", "https://" + operators, "--ca-file", ca.File}, args...)
		if code, stdout, stderr := portico(t, nil, args...); code != exitOK || stdout != "Purged.\n" {
			t.Errorf("purge with a %s: exit %d %s%s", name, code, stdout, stderr)
		}
	}
	for _, args := range [][]string{nil, {"--token-file", writeFile(t, "other", "another one, as long\n")}} {
		args = append([]string{"cache", "purge", "--admin", "https://" + operators, "--ca-file", ca.File}, args...)
		wants(t, nil, exitFailed, "; check --token-file, or --cert-file and --key-file\n", args...)
	}
	if code, _, stderr := portico(t, nil, "cache", "purge", "--admin", "https://"+operators); code != exitFailed || !strings.HasSuffix(stderr, "; name the file of its authority with --ca-file\n") {
		t.Errorf("purge without the authority: exit %d %s", code, stderr)
	}
}

// A renewed certificate comes in with a reload, and TLS does not go out by one.
func TestReloadBringsRenewedCertificates(t *testing.T) {
	t.Parallel()
	ca := process.NewAuthority(t)
	cert, key := ca.Issue(t, 2)
	const least = withTracker + "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n"
	file := writeFile(t, "c.yaml", least+"tls: {cert_file: "+cert+", key_file: "+key+"}\n")
	program, at := startServe(t, file)
	settings, err := config.TLSFiles{CAFile: ca.File}.Client()
	must(t, err)
	serial := func() int64 {
		t.Helper()
		connection, err := tls.Dial("tcp", at[0], settings)
		must(t, err)
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 2 {
		t.Errorf("before: serial %d", got)
	}
	renewed, renewedKey := ca.Issue(t, 7)
	copyFile(t, renewed, cert)
	copyFile(t, renewedKey, key)
	reload(t, program, "http://"+at[1])
	if got := serial(); got != 7 {
		t.Errorf("after: serial %d", got)
	}
	renewed, renewedKey = ca.Issue(t, 8)
	copyFile(t, writeFile(t, "renewed.yaml", least+"tls: {cert_file: "+renewed+", key_file: "+renewedKey+"}\n"), file)
	reload(t, program, "http://"+at[1])
	copyFile(t, writeFile(t, "plain.yaml", least), file)
	reload(t, program, "http://"+at[1])
	if got := serial(); got != 8 {
		t.Errorf("after a reload without TLS, which needs a restart: serial %d", got)
	}
	if status := get(t, "http://"+at[1]+"/status"); !strings.Contains(status, `"tls.cert_file"`) {
		t.Errorf("the status does not name the key that needs a restart:\n%s", status)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, content, 0o600))
}

// startProcess runs the program until the test ends and gives what the pattern
// finds in its output, standard output and error alike.
func startProcess(t *testing.T, pattern string, args ...string) (p *process.Process, found []string) {
	t.Helper()
	expression := regexp.MustCompile(pattern)
	p = process.Launch(t, process.Spec{Program: process.Portico(t), Args: args, Ready: func(p *process.Process) bool {
		found = expression.FindStringSubmatch(p.Out.String() + p.Err.String())
		return found != nil
	}})
	return p, found[1:]
}

// startServe serves a configuration in a process of its own and gives where its two listeners are.
func startServe(t *testing.T, file string) (p *process.Process, at []string) {
	t.Helper()
	return startProcess(t, `"clients":"([^"]+)","operators":"([^"]+)"`, "serve", "--config", file)
}

func get(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("GET %s gives %d and %q (%v)", address, response.StatusCode, text, err)
	}
	return string(text)
}

// reload lets a process read its configuration again, and waits until another runtime is the current one.
func reload(t *testing.T, p *process.Process, operators string) {
	t.Helper()
	started := func() string {
		_, after, _ := strings.Cut(get(t, operators+"/status"), `"started"`)
		return after[:40]
	}
	before := started()
	p.Signal(t, syscall.SIGHUP)
	process.Eventually(t, "the configuration is read again", func() bool { return started() != before })
}

// gatedTracker is a reference tracker that carries out no write before it is let.
type gatedTracker struct {
	*tracker.Server
	// waiting gets a value when a write has come.
	waiting, let chan struct{}
	reads        atomic.Int64
}

func (g *gatedTracker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body) // a body that breaks off is the tracker's to refuse
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		g.waiting <- struct{}{}
		<-g.let
	case strings.Contains(r.URL.Path, "/flag_type/"):
		g.reads.Add(1)
	}
	g.Server.ServeHTTP(w, r)
}

// TestReloadKeepsTheCache: answers outlive a reload, and a write that is under way
// meanwhile ends in the former runtime and counts for the present one.
func TestReloadKeepsTheCache(t *testing.T) {
	t.Parallel()
	gate := &gatedTracker{Server: process.Reference(t, tracker.Options{Seed: tracker.SeedDemo}), waiting: make(chan struct{}, 1), let: make(chan struct{})}
	base := process.Listen(t, gate)
	file := filepath.Join(t.TempDir(), "c.yaml")
	configure := func(dialect string) {
		t.Helper()
		text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ntrackers: {main: {url: %q, dialect: %s}}\n", base, dialect)
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	configure("auto")
	program, at := startServe(t, file)
	clients, operators := "http://"+at[0], "http://"+at[1]
	read := func() (status, text string) {
		t.Helper()
		response, text := send(t, http.MethodGet, clients+"/rest/flag_type/WebShop", "")
		return response.Header.Get("Cache-Status"), text
	}
	read()
	reload(t, program, operators)
	if status, _ := read(); !strings.Contains(status, "hit") || gate.reads.Load() != 1 {
		t.Errorf("after a reload the answer says %q, and the tracker was asked %d times", status, gate.reads.Load())
	}
	done := make(chan string, 1)
	go func() {
		_, text := send(t, http.MethodPut, clients+"/rest/flag_type/1?api_key="+tracker.Keys(tracker.SeedDemo)["editor@demo.example"], `{"description": "said anew"}`)
		done <- text
	}()
	<-gate.waiting
	configure("bugzilla-5") // which begins another cache
	reload(t, program, operators)
	if _, text := read(); strings.Contains(text, "said anew") {
		t.Fatal("the write was carried out before its time")
	}
	close(gate.let)
	written := <-done
	if status, text := read(); !strings.Contains(text, "said anew") {
		t.Errorf("after %s the answer says %q: %s", written, status, text)
	}
}

// turningAway is a program that has been told to end, and waits for load balancers.
func turningAway(t *testing.T, delay string) *process.Process {
	t.Helper()
	file := writeFile(t, "portico.yaml", "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n"+
		"trackers: {main: {url: http://127.0.0.1:1/}}\ntimeouts: {shutdown_delay: "+delay+"}\n")
	says := func(what string) func(*process.Process) bool {
		return func(p *process.Process) bool { return strings.Contains(p.Err.String(), what) }
	}
	p := process.Launch(t, process.Spec{
		Program: "/bin/sh", Args: []string{"-c", `trap "" INT; exec "$0" serve --config "$1"`, process.Portico(t), file},
		Fails: true, Ready: says(`"listening"`),
	})
	p.Signal(t, syscall.SIGTERM)
	process.Eventually(t, "it waits for load balancers", func() bool { return says(`"waiting for load balancers"`)(p) })
	return p
}

// While the program turns clients away, a SIGHUP that comes late changes nothing, least of all ends it at once.
func TestHangupWhileTurningAway(t *testing.T) {
	t.Parallel()
	p := turningAway(t, "2s")
	p.Signal(t, syscall.SIGHUP)
	if code := p.Wait(t, time.Minute); code != exitOK || !strings.Contains(p.Err.String(), `"stopped"`) {
		t.Errorf("ended with %d\n%s", code, &p.Err)
	}
}

// A SIGHUP while the program starts does not end it: a store may take its time.
func TestHangupAtStart(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	file := writeFile(t, "portico.yaml", "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\nprimary: a\ncandidate: b\n"+
		"trackers: {a: {url: 'http://127.0.0.1:1/'}, b: {url: 'http://127.0.0.1:2/'}}\nstate: postgres://u@"+silent.Addr().String()+"/d\n")
	p := process.Launch(t, process.Spec{Program: process.Portico(t), Args: []string{"serve", "--config", file}, Fails: true})
	conn, err := silent.Accept() // now the program opens its store
	must(t, err)
	defer conn.Close()
	p.Signal(t, syscall.SIGHUP)
	p.Signal(t, syscall.SIGTERM)
	if code := p.Wait(t, time.Minute); code != exitFailed || !strings.Contains(p.Err.String(), `"cannot serve"`) {
		t.Errorf("ended with %d\n%s", code, &p.Err)
	}
}

// A second signal ends the program at once, an interrupt too where a shell has it ignored, as for what it runs in the background.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p, told := turningAway(t, "60s"), time.Now()
	p.Signal(t, os.Interrupt)
	if code := p.Wait(t, time.Minute); code != exitFailed || time.Since(told) > 30*time.Second {
		t.Errorf("ended after %s with %d", time.Since(told), code)
	}
}

// TestNothingIsBuiltBeforeTheSocketsAreOpen: a second process in the place of one that runs stores no rules in its state, and leaves no
// empty recording, which would be in the way of the next try.
func TestNothingIsBuiltBeforeTheSocketsAreOpen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	store, recording := filepath.Join(t.TempDir(), "state.db"), filepath.Join(t.TempDir(), "a.jsonl")
	file := writeFile(t, "c.yaml", "listen: "+taken.Addr().String()+"\nadmin: {listen: 127.0.0.1:0}\nstate: sqlite:"+store+"\n"+withTwo)
	for made, args := range map[string][]string{store: {"serve"}, recording: {"record", "--out", recording}} {
		code, stdout, stderr := portico(t, nil, append(args, "--config", file)...)
		if args[0] == "serve" && !strings.HasPrefix(stderr, `{"time":`) {
			t.Errorf("programs that read the log get %s", stderr)
		}
		if _, err := os.Stat(made); code != exitFailed || stdout != "" || !strings.Contains(stderr, "address already in use; choose another address") || !os.IsNotExist(err) {
			t.Errorf("%s: exit %d, %s: %v, said %s%s", args, code, made, err, stdout, stderr)
		}
	}
}

// TestOperatorsWhoStopSending: as of clients, no more is waited for what is sent to the other listener than timeouts.read.
func TestOperatorsWhoStopSending(t *testing.T) {
	file := writeFile(t, "c.yaml", withTracker+"listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ntimeouts: {read: 100ms}\n")
	_, operators := serveConfig(t, file)
	conn, err := net.Dial("tcp", operators)
	must(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, "POST /cache/purge HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\na")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal("there is no answer: ", err)
	}
	_ = answer.Body.Close()
}

// startPassing serves a tracker that answers as handler says, by a configuration with more.
func startPassing(t *testing.T, more string, handler http.HandlerFunc) string {
	t.Helper()
	clients, _ := serveConfig(t, writeFile(t, "c.yaml", fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n"+
		"trackers: {main: {url: %q, dialect: bugzilla-5}}\ncache: {scope: off}\n%s", stub(t, handler), more)))
	return "http://" + clients
}

// beginCall makes a request; the answer's body is the caller's to read.
func beginCall(t *testing.T, method, address string) *http.Response {
	t.Helper()
	response, err := sendBy(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}, method, address, "")
	must(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// What passes through goes out as it comes, whether its length is known or not.
func TestPassingAnswersStream(t *testing.T) {
	client := make(chan struct{})
	address := startPassing(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rest/version" {
			_, _ = io.WriteString(w, `{"version":"5.2"}`)
			return
		}
		if r.URL.Query().Has("length") {
			w.Header().Set("Content-Length", "8")
		}
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-client: // has it
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "end")
	})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, query := range []string{"", "?length"} {
			response, first := beginCall(t, method, address+"/buglist.cgi"+query), make([]byte, 5)
			if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != "first" {
				t.Fatalf("%s %q: %q, %v", method, query, first, err)
			}
			client <- struct{}{}
			if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != "end" {
				t.Errorf("%s %q: then %q, %v", method, query, rest, err)
			}
		}
	}
}

// A link that changes flag types is sent once, and its outcome may be unknown. Other pages are asked for again.
func TestLinksThatChangeAreSentOnce(t *testing.T) {
	var sent atomic.Int64
	address := startPassing(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/rest/version" {
			sent.Add(1)
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, `{"version":"5.2"}`)
	})
	response := beginCall(t, http.MethodGet, address+"/editflagtypes.cgi?action=deactivate&id=1")
	if reason := response.Header.Get("Portico-Error"); response.StatusCode != http.StatusGatewayTimeout || !strings.Contains(reason, "outcome=unknown") {
		t.Errorf("a link that changes something: %s, %s", response.Status, reason)
	}
	if n := sent.Swap(0); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	if response = beginCall(t, http.MethodGet, address+"/editflagtypes.cgi"); response.StatusCode != http.StatusBadGateway || sent.Load() < 2 {
		t.Errorf("a page: %s, sent %d times", response.Status, sent.Load())
	}
}

// TestZeroTimeoutMeansNoWait: a configured time of 0 is not replaced by the default of transport.
func TestZeroTimeoutMeansNoWait(t *testing.T) {
	arrived, let := make(chan struct{}, 9), make(chan struct{})
	address := startPassing(t, "limits: {concurrency: 1, queue: 5, queue_wait: 0s}\n", func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-let
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if first, err := http.Post(address+"/x.cgi", "text/plain", http.NoBody); err == nil {
			_ = first.Body.Close()
		}
	}()
	<-arrived
	process.Eventually(t, "a call is refused before it could have waited", func() bool {
		begun := time.Now()
		if second := beginCall(t, http.MethodPost, address+"/x.cgi"); second.StatusCode != http.StatusServiceUnavailable {
			t.Error(second.Status)
		}
		return time.Since(begun) < 900*time.Millisecond
	})
	close(let)
	<-done
}
