package app

import (
	"crypto/tls"

	"portico/cmd/portico/config"
	"portico/upstream"
	"portico/upstream/switchover"
)

// namedCallers returns all callers that have names.
func namedCallers(cfg *config.Config) upstream.NamedCallers {
	known := upstream.NamedCallers{}
	for name := range cfg.Callers {
		named := upstream.NamedCaller{Name: name, Keys: map[string]string{}}
		for tracker := range cfg.Trackers {
			if key := cfg.KeyAt(name, tracker).Text(); key != "" {
				named.Keys[tracker] = key
			}
		}
		known.Add(named)
	}
	return known
}

// liveKeys returns what a tracker is shown in live requests.
func (rt *Runtime) liveKeys(tracker string) switchover.Keys {
	t := rt.cfg.Trackers[tracker]
	return switchover.Keys{
		Tracker: tracker, Credentials: t.Credentials, ServiceKey: t.ServiceKey.Text(), RefuseLogins: t.Logins == "refuse", Named: rt.callers,
	}
}

// comparisonKeys returns what a tracker is shown in comparisons, where live is what it is shown in live requests. Only where the candidate
// is shown the caller's own key there, canary.credentials counts.
func (rt *Runtime) comparisonKeys(live switchover.Keys) switchover.Keys {
	settings := &rt.cfg.Canary
	isService := settings.Credentials == switchover.CredentialsService
	candidate := switchover.Keys{Credentials: rt.cfg.Trackers[rt.cfg.Candidate].Credentials}
	if !candidate.Forwards() || settings.Credentials == live.Credentials || isService && live.Tracker != rt.cfg.Candidate || !live.Forwards() {
		return live
	}
	live.Credentials, live.ServiceKey = settings.Credentials, settings.ServiceKey.Text()
	live.ForAll, live.RefuseLogins = isService, !isService
	return live
}

// serverTLS returns the settings of a listener, or nil where TLS is off. HTTP/2 is not offered: it would bring a second way to read requests
// and wins nothing for clients that send one at a time. A client certificate is checked, but not required: health checks come without one,
// and package admin decides what needs one.
func serverTLS(t config.AdminTLS) (*tls.Config, error) {
	settings, err := config.TLSFiles{CAFile: t.ClientCAFile, KeyPair: t.KeyPair}.Client()
	if err != nil || !t.On() {
		return nil, err
	}
	settings.NextProtos, settings.ClientCAs = []string{"http/1.1"}, settings.RootCAs
	if settings.ClientCAs != nil {
		settings.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return settings, nil
}
