package ratelimit

import "regexp/syntax"

// trails returns the states that one leads to within its loop, in the order of
// the program's preference, and whether there are two ways to one of them.
func (a *ambiguity) trails(state uint32) (states []uint32, twice bool, err error) {
	w := &walk{ambiguity: a, from: state}
	err = w.to(a.prog.Inst[state].Out, 0)
	return w.states, w.twice, err
}

// walk goes all the ways through instructions that take no letter.
type walk struct {
	*ambiguity
	from   uint32
	states []uint32
	twice  bool
}

func (w *walk) to(pc uint32, asserted syntax.EmptyOp) error {
	if *w.steps--; *w.steps < 0 {
		return errSteps
	}
	if w.twice || w.loop[pc] != w.loop[w.from] {
		return nil
	}
	switch inst := &w.prog.Inst[pc]; inst.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		if err := w.take(&w.used[pc].first, inst.Out, asserted); err != nil {
			return err
		}
		return w.take(&w.used[pc].second, inst.Arg, asserted)
	case syntax.InstCapture, syntax.InstNop:
		return w.take(&w.used[pc].first, inst.Out, asserted)
	case syntax.InstEmptyWidth:
		return w.take(&w.used[pc].first, inst.Out, asserted|syntax.EmptyOp(inst.Arg)) //nolint:gosec // that is what the argument is
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		w.arrive(pc, asserted)
	case syntax.InstMatch, syntax.InstFail:
	}
	return nil
}

func (w *walk) take(used *bool, to uint32, asserted syntax.EmptyOp) error {
	if *used {
		return nil
	}
	*used = true
	defer func() { *used = false }()
	return w.to(to, asserted)
}

func (w *walk) arrive(pc uint32, asserted syntax.EmptyOp) {
	if !w.letters.hold(asserted, w.from, pc) {
		return
	}
	if w.seen[pc] == w.from {
		w.twice = true
		return
	}
	w.seen[pc] = w.from
	w.states = append(w.states, pc)
}

// takes tells whether an instruction takes a letter.
func takes(inst *syntax.Inst) bool {
	switch inst.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	default:
		return false
	}
}

// components numbers the strongly connected components of a program, from 1 on, in
// Tarjan's way; an instruction on its own is in none, and has 0: none leads to itself.
func components(prog *syntax.Prog) []int {
	n := len(prog.Inst)
	c := &connected{prog: prog, index: make([]int, n), low: make([]int, n), of: make([]int, n), done: make([]bool, n)}
	c.visit(uint32(prog.Start)) //nolint:gosec // there are at most some thousand instructions
	return c.of
}

// connected is Tarjan's algorithm: index is the order of visits, from 1 on; low the
// first instruction that is reached from one and not yet in a component.
type connected struct {
	prog  *syntax.Prog
	index []int
	low   []int
	of    []int
	done  []bool
	stack []uint32
	next  int
	parts int
}

func (c *connected) visit(pc uint32) {
	c.next++
	c.index[pc], c.low[pc] = c.next, c.next
	c.stack = append(c.stack, pc)
	for _, out := range outs(&c.prog.Inst[pc]) {
		switch {
		case c.index[out] == 0:
			c.visit(out)
			c.low[pc] = min(c.low[pc], c.low[out])
		case !c.done[out]: // on the stack
			c.low[pc] = min(c.low[pc], c.index[out])
		}
	}
	if c.low[pc] < c.index[pc] {
		return
	}
	first := len(c.stack) - 1
	for c.stack[first] != pc {
		first--
	}
	if part := c.stack[first:]; len(part) > 1 {
		c.parts++
		for _, member := range part {
			c.of[member] = c.parts
		}
	}
	for _, member := range c.stack[first:] {
		c.done[member] = true
	}
	c.stack = c.stack[:first]
}

func outs(inst *syntax.Inst) []uint32 {
	switch inst.Op {
	case syntax.InstMatch, syntax.InstFail:
		return nil
	case syntax.InstAlt, syntax.InstAltMatch:
		return []uint32{inst.Out, inst.Arg}
	default:
		return []uint32{inst.Out}
	}
}
