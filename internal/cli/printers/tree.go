package printers

import "strings"

// node is a node of a tree with a styled label. The label of a top node may have
// several lines.
type node struct {
	label    string
	children []*node
}

// add adds a child to n.
func (n *node) add(label string) *node {
	child := &node{label: label}
	n.children = append(n.children, child)
	return child
}

// child returns the last child of n if it has that label, else a new one. Items
// are sorted, so that those of one parent are adjacent.
func (n *node) child(label string) *node {
	if k := len(n.children); k > 0 && n.children[k-1].label == label {
		return n.children[k-1]
	}
	return n.add(label)
}

// addAll adds children without children.
func (n *node) addAll(labels []string) {
	for _, label := range labels {
		n.add(label)
	}
}

// nodes writes the nodes below a root: with branches in a tree, else indented.
func (w *textWriter) nodes(root *node) {
	for _, top := range root.children {
		w.top(top)
		if w.tree {
			w.writeChildren(top, "")
		} else {
			w.indentChildren(top, "  ")
		}
	}
}

// top writes a top node below a blank line.
func (w *textWriter) top(n *node) {
	w.blankLine()
	for row := range strings.SplitSeq(n.label, "\n") {
		w.line(row)
	}
}

func (w *textWriter) indentChildren(n *node, indent string) {
	for _, child := range n.children {
		w.line(indent, child.label)
		w.indentChildren(child, indent+"  ")
	}
}

func (w *textWriter) writeChildren(n *node, indent string) {
	for i, child := range n.children {
		branch, below := "├─ ", "│  "
		if i == len(n.children)-1 {
			branch, below = "└─ ", "   "
		}
		w.line(indent, branch, child.label)
		w.writeChildren(child, indent+below)
	}
}
