package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/decode"
)

// document is one YAML document of a file, or one of several JSON values in it.
type document struct {
	position  Position
	startLine int // line of the file at which data starts
	data      []byte
}

var byteOrderMark = []byte("\uFEFF")

// split splits a file into its documents. Documents without content are omitted,
// but count for the numbers of the others.
func split(file string, data []byte) (out []document, errs []error) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if line := invalidLine(data); line > 0 {
		return nil, []error{Position{File: file, Line: line}.errorf("%w: invalid UTF-8; save the file as UTF-8", ErrFormat)}
	}
	current := document{position: Position{File: file, Document: 1}, startLine: 1}
	flush := func(next int) {
		values := current.values()
		out = append(out, values...)
		current = document{position: Position{File: file, Document: current.position.Document + max(1, len(values))}, startLine: next}
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		rest, separator := separator(line)
		switch {
		case !separator:
			current.data = append(current.data, line...)
		case rest != "" && rest[0] != '#':
			at := Position{File: file, Line: number}
			errs = append(errs, at.errorf("%w: unexpected %q after a document separator; move it to the next line", ErrFormat, rest))
			flush(number + 1)
		default:
			flush(number + 1)
		}
	}
	flush(number + 1)
	return out, errs
}

// values returns the JSON values of a document, which need no separator, as kubectl reads
// them; what follows a value and is not JSON is a YAML document. A document without
// content has none.
func (d document) values() (out []document) {
	for d.position.Line = d.start(); d.position.Line > 0; d.position.Line = d.start() {
		length := d.jsonLength()
		if length == 0 {
			return append(out, d)
		}
		rest := d
		rest.position.Document++
		rest.startLine += bytes.Count(d.data[:length], []byte("\n"))
		d.data, rest.data = d.data[:length:length], d.data[length:]
		out, d = append(out, d), rest
	}
	return out
}

// jsonLength returns the length of the document up to the end of its first JSON object or
// array, with the comments before it; 0 if it starts with neither.
func (d document) jsonLength() int {
	before := 0
	for line := range bytes.Lines(d.data) {
		text := bytes.TrimSpace(line)
		if len(text) > 0 && text[0] != '#' {
			break
		}
		before += len(line)
	}
	text := d.data[before:]
	if trimmed := bytes.TrimSpace(text); trimmed[0] != '{' && trimmed[0] != '[' {
		return 0
	}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if decoder.SkipValue() != nil {
		return 0 // YAML in flow style, or neither
	}
	return before + int(decoder.InputOffset())
}

// separator reports whether a line separates documents, and returns the rest of
// the line.
func separator(line []byte) (rest string, ok bool) {
	for _, marker := range []string{"---", "..."} {
		after, found := bytes.CutPrefix(line, []byte(marker))
		if found && (len(after) == 0 || strings.ContainsRune(" \t\r\n", rune(after[0]))) {
			return string(bytes.TrimSpace(after)), true
		}
	}
	return "", false
}

// invalidLine returns the first line that is not UTF-8, or 0.
func invalidLine(data []byte) int {
	if utf8.Valid(data) {
		return 0
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if !utf8.Valid(line) {
			return number
		}
	}
	return number
}

// start returns the line of the first content, or 0 if there is none.
func (d document) start() int {
	number := d.startLine
	for line := range bytes.Lines(d.data) {
		text := bytes.TrimSpace(line)
		if len(text) > 0 && text[0] != '#' && text[0] != '%' {
			return number
		}
		number++
	}
	return 0
}

// decode parses the document as an object.
func (d document) decode() (map[string]any, error) {
	if err := d.checkAliases(); err != nil {
		return nil, d.position.errorf("%w", err)
	}
	data, err := yaml.YAMLToJSONStrict(d.data)
	if err != nil {
		return nil, d.position.errorf("%w: %s%s", ErrFormat, d.message(err), d.advice())
	}
	var value any
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &value); err != nil {
		return nil, d.position.errorf("%w: %s", ErrFormat, d.message(err))
	}
	if err := d.checkEnd(); err != nil {
		return nil, err
	}
	content, ok := value.(map[string]any)
	if !ok {
		return nil, d.position.errorf("%w: must be an object with apiVersion, kind and metadata, not %s", ErrFormat, typeName(value)+listAdvice(value))
	}
	return content, nil
}

// checkEnd returns an error if anything follows the first value of the document: the
// parser stops there. Nothing can follow a map in block style, which starts with a name.
func (d document) checkEnd() error {
	first := bytes.TrimSpace(d.data)
	if r, _ := utf8.DecodeRune(first); unicode.IsLetter(r) {
		return nil
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(d.data))
	var root yamlv3.Node
	if decoder.Decode(&root) != nil { // the parsers do not agree
		return nil
	}
	if err := decoder.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return d.position.errorf("%w: %s; separate documents with ---", ErrFormat, d.message(err))
	}
	return nil
}

// advice returns what to do about a document that cannot be parsed, if its text shows it.
func (d document) advice() string {
	if bytes.Contains(d.data, []byte("{{")) {
		return "; this looks like a template: render it first, for example with helm template"
	}
	if d.isTruncated() {
		return "; the JSON value is not closed: the document is truncated"
	}
	number, begun := d.startLine, false
	for line := range bytes.Lines(d.data) {
		if bytes.HasPrefix(line, []byte("apiVersion:")) {
			if begun {
				return fmt.Sprintf("; line %d begins another object: separate documents with ---", number)
			}
			begun = true
		}
		text := bytes.TrimLeft(line, " \t")
		if len(bytes.TrimSpace(text)) > 0 && bytes.ContainsRune(line[:len(line)-len(text)], '\t') {
			return fmt.Sprintf("; line %d is indented with a tab: use spaces", number)
		}
		number++
	}
	return ""
}

// isTruncated reports whether the document is a JSON object or array that does not end.
func (d document) isTruncated() bool {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(d.data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return errors.Is(decoder.SkipValue(), io.ErrUnexpectedEOF)
}

// secretName is in each document with a Secret. Errors of the parser quote the document,
// so they are not shown for such a one.
var secretName = regexp.MustCompile(`\bSecret(List)?\b`)

var lineNumber = regexp.MustCompile(`line (\d+)`)

// message returns an error of the YAML parser on one line, with line numbers of
// the file.
func (d document) message(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if secretName.Match(d.data) {
		text = "yaml: the document has a Secret and cannot be parsed"
		if line := lineNumber.FindString(err.Error()); line != "" {
			text = "yaml: " + line + ": the document has a Secret and cannot be parsed"
		}
	}
	return lineNumber.ReplaceAllStringFunc(text, func(s string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(s, "line "))
		if err != nil {
			return s
		}
		return fmt.Sprintf("line %d", n+d.startLine-1)
	})
}

// listAdvice returns what to do about an array in place of an object.
func listAdvice(v any) string {
	if _, ok := v.([]any); ok {
		return "; write each object as a document of its own, or all as the items of a List"
	}
	return ""
}

// typeName returns the type of a decoded value.
func typeName(v any) string {
	switch v.(type) {
	case []any:
		return "array"
	case bool:
		return "boolean (quote the strings yes, no, on, off, y and n in YAML)"
	default:
		return decode.TypeName(v)
	}
}
