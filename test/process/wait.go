package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// ErrNotYet says that a program ended, or took too long, before it did what was
// waited for.
var ErrNotYet = errors.New("waited in vain")

// Question asks something about a running program: whether it is as wanted, and
// what the answer was, for the message if it never is.
type Question func(context.Context) (done bool, answer string)

// Wait says how a program is waited for.
type Wait struct {
	// Limit is how long that may take.
	Limit time.Duration
	// Pause is between two questions.
	Pause time.Duration
	// Problem is what is wrong if that is not enough.
	Problem string
}

// Until asks until it is told yes. Its error is ErrNotYet with the last answer
// and the end of the log, or why the context ended.
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
			last = answer // the last one is often just that the deadline is over
		}
		select {
		case <-time.After(w.Pause):
		case <-p.Done():
			return fmt.Errorf("%w: it ended with exit code %d; its log:\n%s", ErrNotYet, p.Code(), p.Tail())
		case <-deadline.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%w: %s (%s); its log:\n%s", ErrNotYet, w.Problem, last, p.Tail())
		}
	}
}

// OK asks a URL whether it answers with status 200.
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
