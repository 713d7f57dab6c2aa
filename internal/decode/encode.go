package decode

import (
	"bytes"
	"encoding/json"
)

// Encode returns a value as JSON that people read: without escapes for HTML, on one line or,
// with an indent, on several.
func Encode(value any, indent string) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
