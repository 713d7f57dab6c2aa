//go:build e2e

package bench_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"overrule.dev/overrule/test/server"
)

// reviewProxy is between the API server and replicas. It measures each call of
// /validate, from the request that it sends to the end of the response.
type reviewProxy struct {
	client *http.Client

	mu       sync.Mutex
	replicas []string // host:port, called in turn
	next     int
	calls    calls
}

// calls are the calls of /validate.
type calls struct {
	took []time.Duration
	// tooMany were answered with the code 429, and unavailable with the status 503.
	// failed had no response.
	tooMany, unavailable, failed int
}

func newReviewProxy() *reviewProxy {
	return &reviewProxy{client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: writers, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}}
}

// use sets the replicas that are called.
func (p *reviewProxy) use(replicas ...*server.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replicas = nil
	for _, s := range replicas {
		p.replicas = append(p.replicas, s.Webhook)
	}
}

// take returns the calls since the last one.
func (p *reviewProxy) take() calls {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.calls
	p.calls = calls{}
	return out
}

// ServeHTTP forwards one call. Without a response it closes the connection.
func (p *reviewProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	start := time.Now()
	status, body, err := p.send(r, review)
	if strings.HasPrefix(r.URL.Path, "/validate") {
		p.record(time.Since(start), status, body, err)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// send sends a review to the next replica.
func (p *reviewProxy) send(r *http.Request, review []byte) (status int, body []byte, err error) {
	replica, err := p.replica()
	if err != nil {
		return 0, nil, err
	}
	out, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "https://"+replica+r.URL.RequestURI(), bytes.NewReader(review))
	if err != nil {
		return 0, nil, err
	}
	out.Header.Set("Content-Type", "application/json")
	answer, err := p.client.Do(out)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

func (p *reviewProxy) replica() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.replicas) == 0 {
		return "", errors.New("no replica runs")
	}
	p.next++
	return p.replicas[p.next%len(p.replicas)], nil
}

func (p *reviewProxy) record(took time.Duration, status int, body []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls.took = append(p.calls.took, took)
	switch {
	case err != nil:
		p.calls.failed++
	case status == http.StatusServiceUnavailable:
		p.calls.unavailable++
	case isTooMany(body):
		p.calls.tooMany++
	}
}

func isTooMany(body []byte) bool {
	if bytes.Contains(body, []byte(`"allowed":true`)) {
		return false
	}
	var review admissionv1.AdmissionReview
	if json.Unmarshal(body, &review) != nil || review.Response == nil || review.Response.Result == nil {
		return false
	}
	return review.Response.Result.Code == http.StatusTooManyRequests
}
