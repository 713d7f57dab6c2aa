package gateway

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Transport is what distinguishes connections to one port: the listeners of a port
// compete for the connections of one transport.
type Transport string

// The transports. HTTPS is TLS that a listener terminates, so HTTPS and TLS listeners
// compete by the server name of the connection.
const (
	TransportHTTP Transport = "HTTP"
	TransportTLS  Transport = "TLS"
	TransportTCP  Transport = "TCP"
	TransportUDP  Transport = "UDP"
)

// Request is a request as it arrives at a gateway, or a connection as far as a gateway
// reads it.
type Request struct {
	Transport Transport
	// Port of the listener, 0 for any.
	Port int32
	// Host is the Host header in lower case, without a port. Of a TLS connection it is
	// also the server name (SNI), unless ServerName is set.
	Host       string
	ServerName string
	Method     string
	// Path starts with a slash, as the client sent it.
	Path string
	// Query and Headers are in the order in which the client sent them.
	Query, Headers []Field
	// GRPC is set for a gRPC call; its path is /SERVICE/METHOD.
	GRPC bool
	// Client is the namespace of the client in a mesh, "" for one without routes of its
	// own, and at a gateway.
	Client string
}

// Field is a header or a query parameter.
type Field struct{ Name, Value string }

// sni returns the server name of a TLS connection.
func (q *Request) sni() string { return cmp.Or(q.ServerName, q.Host) }

// host returns the host, or the server name of a connection whose host is not known.
func (q *Request) host() string { return cmp.Or(q.Host, q.ServerName) }

// Header returns the value of a header, joined with commas where it is sent several
// times. Names are compared without regard to case.
func (q *Request) Header(name string) (value string, ok bool) {
	for _, h := range q.Headers {
		switch {
		case !strings.EqualFold(h.Name, name):
		case ok:
			value += "," + h.Value
		default:
			value, ok = h.Value, true
		}
	}
	return value, ok
}

// Param returns the first value of a query parameter.
func (q *Request) Param(name string) (value string, ok bool) {
	i := slices.IndexFunc(q.Query, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return "", false
	}
	return q.Query[i].Value, true
}

// String returns the request as a person would write it, such as
// "GET http://shop.example.com/cart?x=1 with X-Team: a".
func (q *Request) String() string {
	host := cmp.Or(q.Host, "*")
	switch port := q.Port; {
	case port != 0 && port != q.defaultPort():
		host = net.JoinHostPort(host, strconv.Itoa(int(port)))
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	switch {
	case q.Transport == TransportTCP || q.Transport == TransportUDP:
		return fmt.Sprintf("%s port %d", q.Transport, q.Port)
	case q.Method == "":
		return "tls://" + host
	}
	var b strings.Builder
	if q.GRPC {
		b.WriteString("gRPC ")
	} else {
		b.WriteString(q.Method + " ")
	}
	scheme := "http"
	if q.Transport == TransportTLS {
		scheme = "https"
	}
	b.WriteString(scheme + "://" + host + q.Path)
	for i, f := range q.Query {
		sep := "&"
		if i == 0 {
			sep = "?"
		}
		b.WriteString(sep + url.QueryEscape(f.Name) + "=" + url.QueryEscape(f.Value))
	}
	for i, f := range q.Headers {
		sep := " and "
		if i == 0 {
			sep = " with "
		}
		b.WriteString(sep + f.Name + ": " + f.Value)
	}
	if q.ServerName != "" && q.ServerName != q.Host {
		b.WriteString(" (server name " + q.ServerName + ")")
	}
	if q.Client != "" {
		b.WriteString(" from namespace " + q.Client)
	}
	return b.String()
}

// listenerKey returns what the listeners of the request are chosen by.
func (q *Request) listenerKey() listenerKey {
	key := listenerKey{q.Transport, q.Port, q.Host, q.Client}
	if q.Transport == TransportTLS {
		key.host = q.sni()
	}
	return key
}

func (q *Request) defaultPort() int32 {
	switch q.Transport {
	case TransportHTTP:
		return 80
	case TransportTLS:
		return 443
	default:
		return 0
	}
}

// ParseRequest reads a request such as "GET https://shop.example.com/cart?x=1", where the
// method is GET if it is left out. The schemes are http, https, grpc, grpcs, tls, tcp and
// udp. headers are "name: value".
//
// The port is that of the URL, or the default one of http, https, grpc and grpcs, else 0.
func ParseRequest(text string, headers []string) (*Request, error) {
	method, target, ok := strings.Cut(strings.TrimSpace(text), " ")
	if !ok {
		method, target = "", method
	}
	u, err := url.Parse(strings.TrimSpace(target))
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, fmt.Errorf("invalid request %q: %w", text, err)
	}
	q := &Request{Method: method}
	if err = checkMethod(method); err == nil {
		err = q.setURL(u)
	}
	if err != nil {
		return nil, fmt.Errorf("invalid request %q: %w", text, err)
	}
	for _, h := range headers {
		if err := q.addHeader(h); err != nil {
			return nil, fmt.Errorf("invalid header %q: %w", h, err)
		}
	}
	return q, nil
}

// checkMethod returns an error if a method is not one of HTTP, whose methods are
// case-sensitive; "" is valid.
func checkMethod(method string) error {
	switch {
	case method == "":
		return nil
	case len(validation.IsHTTPHeaderName(method)) > 0:
		return fmt.Errorf("%q is not a method such as GET", method)
	case method != strings.ToUpper(method):
		return fmt.Errorf("method %q must be in upper case: %s", method, strings.ToUpper(method))
	default:
		return nil
	}
}

// addHeader adds a header, "name: value". Host replaces the host of the URL, which stays
// the server name of a TLS connection.
func (q *Request) addHeader(text string) error {
	name, value, ok := strings.Cut(text, ":")
	switch {
	case !ok || len(validation.IsHTTPHeaderName(name)) > 0 || strings.ContainsAny(value, "\r\n\x00"):
		return errors.New("must be a name and a value such as 'X-Team: a'")
	case q.Method == "":
		return fmt.Errorf("a %s connection has no headers", q.Transport)
	}
	value = strings.TrimSpace(value)
	q.Headers = append(q.Headers, Field{name, value})
	if !strings.EqualFold(name, "Host") {
		return nil
	}
	if host, _, err := net.SplitHostPort(value); err == nil {
		value = host
	}
	host, err := NormalizeHost(strings.Trim(value, "[]"))
	if err != nil {
		return err
	}
	if q.Transport == TransportTLS && q.ServerName == "" {
		q.ServerName = q.Host
	}
	q.Host = host
	return nil
}

// transports are those of the schemes of requests.
var transports = map[string]Transport{
	"http": TransportHTTP, "https": TransportTLS, "grpc": TransportHTTP, "grpcs": TransportTLS,
	"tls": TransportTLS, "tcp": TransportTCP, "udp": TransportUDP,
}

// setURL sets what a URL has. The method was set before.
func (q *Request) setURL(u *url.URL) error {
	if u.Scheme == "" {
		return errors.New("the URL has no scheme: must be such as 'GET https://shop.example.com/cart'")
	}
	var err error
	scheme := strings.ToLower(u.Scheme)
	q.Transport, q.GRPC = transports[scheme], strings.HasPrefix(scheme, "grpc")
	if q.Transport == "" {
		return fmt.Errorf("scheme %q is not supported: must be one of http, https, grpc, grpcs, tls, tcp, udp", u.Scheme)
	}
	http := q.GRPC || strings.HasPrefix(scheme, "http")
	if http {
		q.Port = q.defaultPort()
	}
	if text := u.Port(); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return fmt.Errorf("port %q must be a number from 1 to 65535", text)
		}
		q.Port = int32(port)
	}
	switch {
	case !http && (q.Method != "" || u.Path != "" || u.RawQuery != ""):
		return fmt.Errorf("a %s connection has no method, path or query", q.Transport)
	case (q.Transport == TransportTCP || q.Transport == TransportUDP) && q.Port == 0:
		return fmt.Errorf("must have a port, such as %s://:5432", scheme)
	case q.Transport == TransportTCP || q.Transport == TransportUDP:
		return nil
	}
	if q.Host, err = NormalizeHost(u.Hostname()); err != nil {
		return err
	}
	if !http {
		return nil
	}
	q.Path = cmp.Or(u.EscapedPath(), "/")
	switch {
	case q.Method == "" && q.GRPC:
		q.Method = "POST"
	case q.Method == "":
		q.Method = "GET"
	}
	if q.GRPC && strings.Count(q.Path, "/") != 2 {
		return fmt.Errorf("the path of a gRPC call must be /SERVICE/METHOD, not %q", q.Path)
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		if name, err = url.QueryUnescape(name); err == nil {
			value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return fmt.Errorf("query %q: %w", pair, err)
		}
		q.Query = append(q.Query, Field{name, value})
	}
	return nil
}

// NormalizeHost returns the host of a request in the form that hostnames are compared in:
// lower case, without the dot at the end. IP addresses are hosts too. The error says what
// is wrong.
func NormalizeHost(host string) (string, error) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	switch {
	case host == "":
		return "", errors.New("the URL has no host")
	case net.ParseIP(host) != nil:
		return host, nil
	}
	if errs := validation.IsDNS1123Subdomain(host); len(errs) > 0 {
		return "", fmt.Errorf("host %q must be a DNS name or an IP address of a request, without wildcards", host)
	}
	return host, nil
}

// Values that no match names: a request with them meets conditions on other values
// alone. They are random and never shown, since a route could name them otherwise, and so
// hide where the requests go that no route names.
var (
	freeSegment = "any-path-" + strings.ToLower(rand.Text())
	freeLabel   = "any-host-" + strings.ToLower(rand.Text())
	freeText    = "any-text-" + strings.ToLower(rand.Text())
	textSeed    = maphash.MakeSeed()
)

// freeVerb is a method that no match can name.
const freeVerb = "ANY-METHOD"

// setHost sets the host to one that a hostname matches, and as few others as possible.
func (q *Request) setHost(hostname string) {
	switch {
	case q.Transport == TransportTCP || q.Transport == TransportUDP:
	case hostname == "":
		q.Host = freeLabel
	case hostname[0] == '*':
		q.Host = freeLabel + hostname[1:]
	default:
		q.Host = hostname
	}
}

var freeTexts = regexp.MustCompile(freeText + "[0-9a-f]{16}")

// withoutFreeTexts returns the request with "*" in place of what stands for regular
// expressions that cannot be read.
func (q *Request) withoutFreeTexts() *Request {
	shown := func(fields []Field) []Field {
		out := slices.Clone(fields)
		for i := range out {
			out[i].Value = freeTexts.ReplaceAllString(out[i].Value, "*")
		}
		return out
	}
	out := *q
	out.Path, out.Headers, out.Query = freeTexts.ReplaceAllString(q.Path, "*"), shown(q.Headers), shown(q.Query)
	return &out
}
