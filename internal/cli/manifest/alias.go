package manifest

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// checkAliases returns ErrTooLarge for a document that is larger than MaxSize with
// its aliases expanded: a few lines can expand to terabytes. It works on the parsed
// document, in which aliases are not expanded yet.
func (d document) checkAliases() error {
	if !bytes.ContainsRune(d.data, '&') || !bytes.ContainsRune(d.data, '*') {
		return nil
	}
	var root yaml.Node
	if err := yaml.Unmarshal(d.data, &root); err != nil {
		return fmt.Errorf("%w: %s", ErrFormat, d.message(err))
	}
	m := aliasSizer{sizes: make(map[*yaml.Node]int)}
	size, err := m.size(&root)
	if err == nil && size > MaxSize {
		err = fmt.Errorf("%w: the document exceeds %d MiB with its aliases expanded; use fewer aliases", ErrTooLarge, MaxSize>>20)
	}
	return err
}

// nodeSize is the approximate size of a node without its text, in bytes.
const nodeSize = 32

type aliasSizer struct {
	sizes map[*yaml.Node]int // -1 while it is being measured
}

// size returns the size of a node in bytes with all aliases expanded, at most
// MaxSize+1.
func (m *aliasSizer) size(n *yaml.Node) (int, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if size, ok := m.sizes[n]; ok {
		if size < 0 {
			return 0, fmt.Errorf("%w: line %d: the anchor %q contains itself", ErrFormat, n.Line, n.Anchor)
		}
		return size, nil
	}
	m.sizes[n] = -1
	size := nodeSize + len(n.Value)
	for _, child := range n.Content {
		s, err := m.size(child)
		if err != nil {
			return 0, err
		}
		size = min(size+s, MaxSize+1)
	}
	m.sizes[n] = size
	return size, nil
}
