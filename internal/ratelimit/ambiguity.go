package ratelimit

import (
	"encoding/binary"
	"regexp/syntax"
)

// ambiguity finds out whether a program can match one text in exponentially many
// ways. It can just if two different ways lead from some state over one text back
// to that same state: each time that the text is repeated, the ways double.
// (Weber and Seidl, "On the degree of ambiguity of finite automata".)
//
// A state is an instruction that takes a letter. What is between two of them takes
// none; where there are two ways through that, they are such two ways, too. An
// iteration that takes nothing is no way: engines end a repetition there.
type ambiguity struct {
	prog  *syntax.Prog
	steps *int
	// loop is the strongly connected component of each instruction: two ways back
	// lie in one. 0 is for what is in no loop, which has no way back.
	loop []int
	// used are the branches on the way from a state to where a walk is. To take one
	// again would be an iteration that took nothing; to come by and take the other is
	// none: that is how an outer repetition starts anew.
	used []branches
	// seen is the state that the last walk came from, by instruction; 0 is none, since
	// the first instruction of a program is to fail.
	seen []uint32
	// letters of the states, by instruction.
	letters letters
	// behind are the states that a state leads to within its loop, by instruction;
	// equal ones are kept once, and have one number.
	behind map[uint32]int
	sets   [][]uint32
	known  map[string]int
	// pairs of states that two different ways lead to over one text, that are
	// still to be followed, and those that were found.
	todo  [][2]uint32
	found map[[2]uint32]bool
}

// branches of an instruction, which has one or two.
type branches struct{ first, second bool }

func newAmbiguity(prog *syntax.Prog, steps *int) *ambiguity {
	loop := components(prog)
	return &ambiguity{
		prog: prog, steps: steps, loop: loop, letters: newLetters(prog, loop, steps),
		used: make([]branches, len(prog.Inst)), seen: make([]uint32, len(prog.Inst)),
		behind: map[uint32]int{}, known: map[string]int{}, found: map[[2]uint32]bool{},
	}
}

func (a *ambiguity) exponential() (bool, error) {
	for pc := range a.prog.Inst {
		state := uint32(pc)
		if !takes(&a.prog.Inst[pc]) || a.loop[pc] == 0 {
			continue
		}
		states, twice, err := a.trails(state)
		if err != nil || twice {
			return twice, err
		}
		a.behind[state] = a.number(states)
	}
	if err := a.fork(); err != nil {
		return false, err
	}
	return a.meet()
}

// number of a set of states.
func (a *ambiguity) number(states []uint32) int {
	var key []byte
	for _, s := range states {
		key = binary.BigEndian.AppendUint32(key, s)
	}
	n, ok := a.known[string(key)]
	if !ok {
		n = len(a.sets)
		a.sets = append(a.sets, states)
		a.known[string(key)] = n
	}
	return n
}

// fork finds the pairs of different states behind one state.
func (a *ambiguity) fork() error {
	for _, states := range a.sets {
		for i, p := range states {
			for _, q := range states[i+1:] {
				if err := a.add(p, q); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// add notes a pair, if there is a letter that both take.
func (a *ambiguity) add(p, q uint32) error {
	if *a.steps--; *a.steps < 0 {
		return errSteps
	}
	pair := [2]uint32{min(p, q), max(p, q)}
	if a.found[pair] || !a.letters.overlap(p, q) {
		return nil
	}
	a.found[pair] = true
	a.todo = append(a.todo, pair)
	return nil
}

// meet follows the pairs until the two ways meet in one state. Pairs with the same
// states behind them are followed once.
func (a *ambiguity) meet() (bool, error) {
	followed := map[[2]int]bool{}
	for len(a.todo) > 0 {
		last := len(a.todo) - 1
		pair := a.todo[last]
		a.todo = a.todo[:last]
		sets := [2]int{a.behind[pair[0]], a.behind[pair[1]]}
		if followed[sets] {
			continue
		}
		followed[sets] = true
		if met, err := a.follow(a.sets[sets[0]], a.sets[sets[1]]); met || err != nil {
			return met, err
		}
	}
	return false, nil
}

func (a *ambiguity) follow(left, right []uint32) (bool, error) {
	for _, p := range left {
		for _, q := range right {
			if p == q {
				return true, nil
			}
			if err := a.add(p, q); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}
