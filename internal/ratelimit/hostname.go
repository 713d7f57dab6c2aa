package ratelimit

import (
	"net/netip"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxHostnameLength = 253

// hostname is Gateway API's pattern of one, wildcards included.
var hostnamePattern = regexp.MustCompile(`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

func (r *reader) hostnames(at *field.Path, value any) []string {
	items := r.list(at, value, maxItems)
	var hostnames []string
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		text, ok := r.text(at.Index(i), item, maxHostnameLength)
		if !ok {
			continue
		}
		host := strings.ToLower(text)
		if wrong := hostnameError(host); wrong != "" {
			r.addError(field.Invalid(at.Index(i), truncate(text), wrong))
			continue
		}
		if seen[host] {
			r.addError(field.Duplicate(at.Index(i), host))
		}
		seen[host] = true
		hostnames = append(hostnames, host)
	}
	return hostnames
}

// hostnameError says why no route can have a hostname, in lower case.
func hostnameError(host string) string {
	const example = ": write it like games.example.com or *.example.com"
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return "is an IP address, not a hostname" + example
	}
	switch {
	case strings.Contains(host, "/"):
		return "is no hostname but a URL or a path" + example
	case strings.Contains(host, ":"):
		return "is a hostname with a port: take the port away"
	case !hostnamePattern.MatchString(host):
		return "is no hostname" + example
	}
	return ""
}
