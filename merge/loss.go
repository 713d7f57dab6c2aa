package merge

// equals are the origins whose equal value met that of a rule: they survive
// and are lost with it. It is a tree, read from before to after and never
// edited, so that joining two costs nothing however many they are.
type equals struct {
	before *equals
	origin Origin
	after  *equals
}

// share lets the origins of an equal value survive with e.
func (e *Effective) share(o Effective) {
	e.same = &equals{before: e.same, origin: o.From, after: o.same}
}

// loss is the loss of a rule of a policy. One to nobody tells in settle that
// the rule survives all the same.
type loss struct {
	Lost
	of *Policy
}

// lose books the loss of a rule for everyone who held it.
func (f *fold) lose(e Effective, to Origin) {
	f.loseOne(e.Rule, e.From, to)
	f.loseEquals(e.Rule, e.same, to)
}

func (f *fold) loseEquals(r *Rule, s *equals, to Origin) {
	for ; s != nil; s = s.after {
		f.loseEquals(r, s.before, to)
		f.loseOne(r, s.origin, to)
	}
}

func (f *fold) loseOne(r *Rule, from, to Origin) {
	f.losses = append(f.losses, loss{Lost{Rule: r, Block: from.Block, To: to}, from.Policy})
}
