package certs

import "time"

// Names of certificates, for those who look on.
const (
	NameServing   = "serving"
	NameAuthority = "authority"
	NameCallers   = "callers"
)

// Expiries returns when the certificate that is served ends, and the authority
// that signed it, by name; none before one is served.
func (a *Authority) Expiries() map[string]time.Time {
	serving := a.serving.Load()
	if serving == nil {
		return nil
	}
	return map[string]time.Time{NameServing: serving.notAfter(), NameAuthority: serving.issuer.NotAfter}
}

// Expiries returns when the certificate that is served ends, and the authority
// that verifies it, by name; none before one is served, and no authority if
// there is no CAFile.
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

// Expiries returns when the first of the authorities of callers ends; nothing
// before there are any. Nobody knows here which of them is needed.
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
