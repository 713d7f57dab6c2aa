package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// ErrNotYet means that a program stopped, or took too long, before a condition
// was met.
var ErrNotYet = errors.New("condition not met")

// Question asks a running program whether a condition is met; answer is for the
// error message if it never is.
type Question func(context.Context) (done bool, answer string)

// Wait configures a wait for a program.
type Wait struct {
	// Limit is the maximum time.
	Limit time.Duration
	// Pause is the polling interval.
	Pause time.Duration
	// Problem is the message if the limit is exceeded.
	Problem string
}

// Until polls until the condition is met. Its error is ErrNotYet with the last
// answer and the end of the log, or the cause of the context's end.
func (p *Process) Until(ctx context.Context, w Wait, ask Question) error {
	deadline, cancel := context.WithTimeout(ctx, w.Limit)
	defer cancel()
	last := ""
	for {
		done, answer := ask(deadline)
		if done {
			return nil
		}
		if last == "" || deadline.Err() == nil {
			last = answer // the last one is often only that the deadline is exceeded
		}
		select {
		case <-time.After(w.Pause):
		case <-p.Done():
			return fmt.Errorf("%w: exited with code %d; log:\n%s", ErrNotYet, p.Code(), p.Tail())
		case <-deadline.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%w: %s (%s); log:\n%s", ErrNotYet, w.Problem, last, p.Tail())
		}
	}
}

// OK reports whether a URL answers with status 200.
func OK(url string) Question {
	return func(ctx context.Context) (bool, string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err.Error()
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return false, err.Error()
		}
		return response.StatusCode == http.StatusOK, string(body)
	}
}
