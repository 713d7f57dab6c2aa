package ratelimit

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxHostnameLength = 253

func (r *reader) hostname(at *field.Path, value any) string {
	text, ok := r.text(at, value, maxHostnameLength)
	if !ok {
		return ""
	}
	host := strings.ToLower(text)
	if wrong := hostnameError(host); wrong != "" {
		r.addError(field.Invalid(at, truncate(text), wrong))
		return ""
	}
	return host
}

// hostnameError returns why no route can have a hostname, which is in lower case. It
// is empty for a valid hostname.
func hostnameError(host string) string {
	const must = "must be a hostname such as games.example.com or *.example.com"
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return must + ", not an IP address"
	}
	switch {
	case strings.Contains(host, "/"):
		return must + ", not a URL or a path"
	case strings.Contains(host, ":"):
		return must + ", without a port"
	case len(validation.IsDNS1123Subdomain(strings.TrimPrefix(host, "*."))) > 0:
		return must
	}
	return ""
}
