package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrGap means that not all writes were recorded.
var ErrGap = errors.New("the recording has a gap")

// etcd is a client of the JSON gateway of etcd.
type etcd struct{ url string }

// keyValue is a key with its value. Revisions of etcd are resource versions.
type keyValue struct {
	Key      []byte `json:"key"`
	Value    []byte `json:"value"`
	Revision int64  `json:"mod_revision,string"`
}

// change is a write of a key.
type change struct {
	Type     string   `json:"type"` // "" is PUT
	KeyValue keyValue `json:"kv"`
}

const typeDelete = "DELETE"

type header struct {
	Revision int64 `json:"revision,string"`
}

// everything is the range of all keys.
var everything = []byte{0}

// list returns all keys, and the revision at which they were listed.
func (e etcd) list(ctx context.Context) ([]keyValue, int64, error) {
	var out struct {
		Header header     `json:"header"`
		Keys   []keyValue `json:"kvs"`
	}
	err := e.call(ctx, "/v3/kv/range", map[string]any{"key": everything, "range_end": everything}, &out)
	return out.Keys, out.Header.Revision, err
}

// put writes a key and returns its revision.
func (e etcd) put(ctx context.Context, key string) (int64, error) {
	var out struct {
		Header header `json:"header"`
	}
	err := e.call(ctx, "/v3/kv/put", map[string]any{"key": []byte(key)}, &out)
	return out.Header.Revision, err
}

// watch calls observe for each write from a revision on, in order, until it returns
// false. It returns ErrGap if etcd cannot deliver all of them.
func (e etcd) watch(ctx context.Context, from int64, observe func(change) bool) error {
	body, err := e.open(ctx, "/v3/watch", map[string]any{
		"create_request": map[string]any{"key": everything, "range_end": everything, "start_revision": fmt.Sprint(from)},
	})
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it was only read
	for in := json.NewDecoder(body); ; {
		var message struct {
			Result struct {
				Canceled bool     `json:"canceled"`
				Reason   string   `json:"cancel_reason"`
				Events   []change `json:"events"`
			} `json:"result"`
			Error json.RawMessage `json:"error"`
		}
		switch err := in.Decode(&message); {
		case err != nil:
			return fmt.Errorf("%w: watch etcd: %w", ErrGap, err)
		case message.Result.Canceled || message.Error != nil:
			return fmt.Errorf("%w: etcd ended the watch: %s%s", ErrGap, message.Result.Reason, message.Error)
		}
		for _, c := range message.Result.Events {
			if !observe(c) {
				return nil
			}
		}
	}
}

func (e etcd) call(ctx context.Context, path string, request, into any) error {
	body, err := e.open(ctx, path, request)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it was only read
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return fmt.Errorf("read the response of etcd to %s: %w", path, err)
	}
	return nil
}

func (e etcd) open(ctx context.Context, path string, request any) (io.ReadCloser, error) {
	data, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode the request of etcd: %w", err)
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+path, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("call etcd: %w", err)
	}
	response, err := http.DefaultClient.Do(call)
	if err != nil {
		return nil, fmt.Errorf("call etcd: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("call etcd: %s responded %s", path, response.Status)
	}
	return response.Body, nil
}
