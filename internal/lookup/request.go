package lookup

import (
	"errors"
	"fmt"
	"net"

	"overrule.dev/overrule/internal/gateway"
)

// Request describes a request. An error names the field that it is about.
type Request struct {
	// Line is a method, GET by default, and a URL.
	Line string
	// Headers are given as "name: value".
	Headers []string
	// Gateway is the only one to look at, given as NAMESPACE/NAME or NAME, "" for all.
	Gateway string
	// Port of the listener, nil for that of the URL.
	Port *int32
	// ServerName of the TLS connection, "" for the host.
	ServerName string
	// ClientNamespace is that of a client in a mesh, "" for a request to a gateway.
	ClientNamespace string
	// Names are those of the fields in messages.
	Names Names
	// Namespace is that of a Gateway without one.
	Namespace string
	// Explain adds the candidates.
	Explain bool
}

// Names are the names of the fields of a Request in messages.
type Names struct{ Line, Gateway, Port, ServerName, ClientNamespace string }

// Parse returns the request.
func (r *Request) Parse() (*gateway.Request, error) {
	q, err := gateway.ParseRequest(r.Line, r.Headers)
	if err != nil {
		return nil, err
	}
	if r.Port != nil {
		if *r.Port < 1 || *r.Port > 65535 {
			return nil, fmt.Errorf("invalid %s %d: must be in 1-65535", r.Names.Port, *r.Port)
		}
		q.Port = *r.Port
	}
	if r.ServerName != "" {
		if err := setServerName(q, r.ServerName); err != nil {
			return nil, fmt.Errorf("invalid %s %q: %w", r.Names.ServerName, r.ServerName, err)
		}
	}
	switch {
	case r.ClientNamespace == "":
		return q, nil
	case r.Gateway != "":
		return nil, fmt.Errorf("invalid %s: must not be used with %s", r.Names.ClientNamespace, r.Names.Gateway)
	case q.Transport != gateway.TransportHTTP:
		return nil, fmt.Errorf("invalid %s: must be used with a request of scheme http or grpc; %s in a mesh is not supported", r.Names.ClientNamespace, q.Transport)
	default:
		return q, nil
	}
}

// setServerName sets the server name of a TLS connection.
func setServerName(q *gateway.Request, name string) error {
	host, err := gateway.NormalizeHost(name)
	switch {
	case q.Transport != gateway.TransportTLS:
		return errors.New("must be used with a request of scheme https, grpcs or tls")
	case err != nil || net.ParseIP(host) != nil:
		return errors.New("must be a DNS name without wildcards")
	}
	q.ServerName = host
	if q.Method == "" {
		q.Host = host // nothing else names the host
	}
	return nil
}
