package decode

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzField holds the look at one member to the standard library, where each
// name comes once and unescaped; on what is no JSON it only must not panic.
func FuzzField(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"b":[1,{"a":2}],"a":"x\"}"}`, ` { "a" : {"b":{}} , "c":-1.5e3 } `, `{"a":tru`, `{"a`, `{"a":"\`, `[]`, `{"a":}`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := Field(data, "a")
		var object map[string]json.RawMessage
		if !json.Valid(data) || json.Unmarshal(data, &object) != nil || object == nil || len(object) != members(data) {
			return
		}
		if want, ok := object["a"]; ok && want != nil {
			require.NotNil(t, got, "%s", data)
			require.JSONEq(t, string(want), string(got), "%s", data)
		}
	})
}

// members counts the names in an object that come as they are; -1 if some come
// otherwise.
func members(data []byte) int {
	n := 0
	d := json.NewDecoder(bytes.NewReader(data))
	_, _ = d.Token()
	for d.More() {
		name, _ := d.Token()
		if text, ok := name.(string); !ok || !bytes.Contains(data, []byte(`"`+text+`"`)) {
			return -1
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return -1
		}
		n++
	}
	return n
}
