package merge

import "strings"

// unsetEntry is an entry of E's unset list.
type unsetEntry struct {
	Name
	policy *Policy
}

// unsetIndex indexes the unset list by the path of the entry's key; that of a bare name
// is its only segment. A rule is looked up by its own path instead of being compared
// with every entry.
type unsetIndex map[string][2]unsetSource

// unsetSource is one of the two lowest policies with an entry. The second applies to
// the rules of the first, to which its own list does not apply.
type unsetSource struct {
	policy *Policy
	entry  int // index in the unset list
}

// addUnset adds the unset list of a layer to that of E.
func (f *fold) addUnset(layer int) {
	p := f.layers[layer].Policy
	for _, n := range p.Unset {
		f.unsets = append(f.unsets, unsetEntry{n, p})
	}
	if len(f.unsets) <= smallCount {
		return
	}
	if f.unset == nil {
		f.unset = make(unsetIndex, len(f.unsets))
		f.unset.add(f.unsets, 0)
		return
	}
	f.unset.add(f.unsets, len(f.unsets)-len(p.Unset))
}

// add adds the entries of a list from an index on.
func (u unsetIndex) add(list []unsetEntry, from int) {
	for i, n := range list[from:] {
		at := u[n.key.path]
		switch {
		case at[0].policy == nil:
			at[0] = unsetSource{n.policy, from + i}
		case at[1].policy == nil && at[0].policy != n.policy:
			at[1] = unsetSource{n.policy, from + i}
		default:
			continue
		}
		u[n.key.path] = at
	}
}

// unsetBy returns the lowest policy that unsets a rule of p, or nil.
func (f *fold) unsetBy(p *Policy, r *Rule) *Policy {
	if f.unset != nil {
		return f.unset.lookup(p, r)
	}
	for i := range f.unsets {
		if u := &f.unsets[i]; u.policy != p && u.unsets(r) {
			return u.policy
		}
	}
	return nil
}

// unsets reports whether the name in an unset list takes a rule out.
func (n Name) unsets(r *Rule) bool {
	if r.ItemDepth > 0 {
		return n.key.Holds(r.Key) && strings.Count(n.key.path, "\x00") <= r.ItemDepth
	}
	return n.Matches(r.Key)
}

func (u unsetIndex) lookup(p *Policy, r *Rule) *Policy {
	var by unsetSource
	depth := 0
	for path := range r.Key.prefixesAndName {
		if depth++; r.ItemDepth > 0 && depth > r.ItemDepth {
			break
		}
		at := u[path]
		source := at[0]
		if source.policy == p {
			source = at[1]
		}
		if source.policy != nil && (by.policy == nil || source.entry < by.entry) {
			by = source
		}
	}
	return by.policy
}

// withoutUnset appends a defaults block without the rules that lower policies unset.
func (f *fold) withoutUnset(out []Effective, from Origin, rules []Rule) []Effective {
	if len(f.unsets) == 0 {
		return effective(out, from, rules)
	}
	for i := range rules {
		e := Effective{Rule: &rules[i], From: from}
		if by := f.unsetBy(from.Policy, &rules[i]); by != nil {
			f.recordLoss(e, Origin{Policy: by, Block: Unset})
			continue
		}
		out = append(out, e)
	}
	return out
}
