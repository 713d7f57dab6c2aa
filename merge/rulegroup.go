package merge

import "slices"

// Group is a group of rules that exclude each other. The zero Group is none.
type Group struct {
	// ID of the group, not 0.
	ID uint16
	// One is which policies exclude each other.
	One Exclusion
	// Disables is set for a rule that removes those of its group below its key, those of
	// lower policies, too.
	Disables bool
	// Variant is set for a rule that excludes those of other variants that policies of its
	// tier apply later.
	Variant uint8
}

// Exclusion is which policies with rules of a group exclude each other.
type Exclusion uint8

const (
	// ExcludeNone is none.
	ExcludeNone Exclusion = iota
	// ExcludeSameTier is the policies of one tier (Layer.Tier): the first that is applied
	// has its rules.
	ExcludeSameTier
	// ExcludeOtherTiers is the policies of different tiers: those of the lowest have their
	// rules.
	ExcludeOtherTiers
	// ExcludeLowerTiers is the policies of different tiers: those of the highest have their
	// rules.
	ExcludeLowerTiers
	// ExcludeOtherVariants is the policies of different variants: those of the variant of
	// the lowest have their rules.
	ExcludeOtherVariants
)

// claim is a policy that had rules of a group when it was applied.
type claim struct {
	group Group
	tier  int
	from  Origin
}

// excludes reports whether the policy of the claim excludes the rules of a layer.
func (c *claim) excludes(g Group, by *Layer) bool {
	switch same := c.tier == by.Tier; {
	case c.group.ID != g.ID:
		return false
	case same && c.group.Variant != g.Variant && c.group.Variant != 0 && g.Variant != 0:
		return true
	case g.One == ExcludeOtherTiers:
		return !same
	case g.One == ExcludeOtherVariants:
		return c.group.Variant != g.Variant
	default:
		return g.One != ExcludeNone && same && c.from.Policy != by.Policy
	}
}

// withoutExcluded removes the rules of a block of defaults that lower policies, or those
// that come first on their level, exclude by their group or variant. It edits the block.
func (f *fold) withoutExcluded(block []Effective) []Effective {
	return slices.DeleteFunc(block, func(e Effective) bool {
		if e.Group.One == ExcludeNone && e.Group.Variant == 0 {
			return false
		}
		l := &f.layers[f.current]
		for i := range f.claims {
			if c := &f.claims[i]; c.excludes(e.Group, l) {
				f.recordLoss(e, c.from)
				return true
			}
		}
		f.claims = append(f.claims, claim{e.Group, l.Tier, e.From})
		return false
	})
}

// removeGroups removes from E the rules of other policies whose group a block has, for
// overrides and for the rules that disable others.
func (f *fold) removeGroups(block []Effective, of func(Effective) bool) {
	for _, by := range block {
		if by.Group.ID == 0 || !of(by) {
			continue
		}
		f.setRules(slices.DeleteFunc(f.rules, func(e Effective) bool {
			if e.Group.ID != by.Group.ID || e.Group.Disables && by.Group.Disables || e.From.Policy == by.From.Policy {
				return false
			}
			f.recordLoss(e, by.From)
			return true
		}))
	}
}

func disables(e Effective) bool { return e.Group.Disables }

func inGroup(Effective) bool { return true }

func excludesLower(e Effective) bool { return e.Group.One == ExcludeLowerTiers }
