package coordination

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Paths of the requests between replicas. All are POST.
const (
	pathValidate = "/v1/validate"
	pathHello    = "/v1/hello"
	pathHandOver = "/v1/handover"
	pathWake     = "/v1/wake"
)

// Headers of a forwarded review.
const (
	// HeaderTerm is the term in which the review is to be evaluated.
	HeaderTerm = "Overrule-Term"
	// HeaderRemaining is the time that is left for the response, in milliseconds.
	HeaderRemaining = "Overrule-Remaining"
)

// Review is a review to be forwarded.
type Review struct {
	Body []byte
	// Timeout of the webhook, and the header fields that carry the trace.
	Timeout time.Duration
	Trace   http.Header
}

// Answer is the HTTP response to a forwarded review.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// ErrRefused is in the error of a review that was forwarded to a replica that does not
// evaluate in the expected term.
var ErrRefused = errors.New("the replica does not evaluate in this term")

// Forward forwards a review to a place, and counts it.
func (c *Coordinator) Forward(ctx context.Context, p Place, r Review) (Answer, error) {
	a, err := c.opts.Peers.validate(ctx, p, r)
	result := resultAnswered
	switch {
	case errors.Is(err, ErrRefused):
		result = resultRefused
	case err != nil:
		result = resultFailed
	}
	c.opts.Metrics.forwardedWrite(result)
	return a, err
}

// maxAnswer is the size of the largest response, in bytes: a denial can name many paths.
const maxAnswer = 32 << 20

// Client sends requests to other replicas.
type Client struct{ http *http.Client }

// NewClient returns a client that connects by a transport, which verifies the replicas
// and presents a certificate to them.
func NewClient(transport http.RoundTripper) *Client {
	return &Client{&http.Client{Transport: transport}}
}

// hello tells a leader that this replica can succeed it.
func (c *Client) hello(ctx context.Context, address string, m member) error {
	return c.send(ctx, address, pathHello, m)
}

// handOver sends the log to a successor, and returns once that has confirmed it.
func (c *Client) handOver(ctx context.Context, address string, h handover) error {
	return c.send(ctx, address, pathHandOver, h)
}

// wake makes a replica read the Lease.
func (c *Client) wake(ctx context.Context, address string) error {
	return c.send(ctx, address, pathWake, struct{}{})
}

// validate forwards a review to a place. Its error is ErrRefused if that does not evaluate
// in the term of the place.
func (c *Client) validate(ctx context.Context, p Place, r Review) (Answer, error) {
	header := r.Trace.Clone()
	if header == nil {
		header = make(http.Header)
	}
	header.Set(HeaderTerm, p.Term)
	if end, ok := ctx.Deadline(); ok {
		header.Set(HeaderRemaining, strconv.FormatInt(time.Until(end).Milliseconds(), 10))
	}
	a, err := c.post(ctx, p.Address, pathValidate+"?timeout="+r.Timeout.String(), header, r.Body)
	if err == nil && a.Status == http.StatusMisdirectedRequest {
		return a, ErrRefused
	}
	return a, err
}

func (c *Client) send(ctx context.Context, address, path string, content any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	a, err := c.post(ctx, address, path, make(http.Header), body)
	if err != nil {
		return err
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", address, http.StatusText(a.Status), bytes.TrimSpace(a.Body)) //nolint:err113 // only logged
	}
	return nil
}

func (c *Client) post(ctx context.Context, address, path string, header http.Header, body []byte) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf("create the request: %w", err)
	}
	request.Header = header
	header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{}, fmt.Errorf("send the request: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	out := Answer{Status: response.StatusCode, Header: response.Header}
	if out.Body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
		return Answer{}, fmt.Errorf("read the response of %s: %w", address, err)
	}
	return out, nil
}

// Handler returns the handler of requests of other replicas. validate is that of
// forwarded reviews, and limit the size of the largest handover in bytes. The caller
// verifies that the client is a replica.
func (c *Coordinator) Handler(validate http.Handler, limit int64) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+pathValidate, validate)
	mux.HandleFunc("POST "+pathWake, func(http.ResponseWriter, *http.Request) { c.Wake() })
	mux.HandleFunc("POST "+pathHello, func(w http.ResponseWriter, r *http.Request) {
		var m member
		if readJSON(w, r, maxHello, &m) {
			c.hello(m)
		}
	})
	mux.HandleFunc("POST "+pathHandOver, func(w http.ResponseWriter, r *http.Request) {
		var h handover
		if !readJSON(w, r, limit, &h) {
			return
		}
		if err := c.receive(h); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	return mux
}

// maxHello is the size of the largest greeting in bytes.
const maxHello = 4 << 10

// readJSON reads the body of a request of at most limit bytes. If it cannot, it responds
// and returns false.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64, into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit)).Decode(into)
	if err == nil {
		return true
	}
	status := http.StatusBadRequest
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		status = http.StatusRequestEntityTooLarge
	}
	http.Error(w, err.Error(), status)
	return false
}
