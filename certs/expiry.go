package certs

import "time"

// Names of certificates, as the metrics have them.
const (
	NameServing   = "serving"
	NameAuthority = "authority"
	NameCallers   = "callers"
	// NamePeer is the certificate of calls between replicas, NamePeerAuthority its
	// authority.
	NamePeer          = "peer"
	NamePeerAuthority = "peer-authority"
)

// Expiries returns the expiry of the serving certificate and of the authority that
// signed it, by name; nil before there is one.
func (a *Authority) Expiries() map[string]time.Time {
	serving := a.serving.Load()
	if serving == nil {
		return nil
	}
	return map[string]time.Time{NameServing: serving.notAfter(), NameAuthority: serving.issuer.NotAfter}
}

// Expiries returns the expiry of the certificate of this replica and of the authority
// that signed it, by name; nil before there is one.
func (p *Peers) Expiries() map[string]time.Time {
	serving := p.authority.serving.Load()
	if serving == nil {
		return nil
	}
	return map[string]time.Time{NamePeer: serving.notAfter(), NamePeerAuthority: serving.issuer.NotAfter}
}

// Expiries returns the expiry of the serving certificate and, with a CAFile, of the
// authority that verifies it, by name; nil before there is one.
func (f *Files) Expiries() map[string]time.Time {
	p := f.serving.Load()
	if p == nil {
		return nil
	}
	out := map[string]time.Time{NameServing: p.tls.Leaf.NotAfter}
	if !p.trustedUntil.IsZero() {
		out[NameAuthority] = p.trustedUntil
	}
	return out
}

// Expiries returns the first expiry of the client CAs; nil before there are any.
// Which of them clients need is not known.
func (c *ClientAuth) Expiries() map[string]time.Time {
	trusted := c.current.Load()
	if trusted == nil {
		return nil
	}
	return map[string]time.Time{NameCallers: trusted.firstExpiry}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
