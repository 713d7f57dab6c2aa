package customresource

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiserver/pkg/cel/common"
)

// ratchet says which values an update leaves as they are: the API server does not reject
// it for most of what is wrong with them. It is empty for an object that is created.
type ratchet struct{ object *common.CorrelatedObject }

func newRatchet(v *version, object, old map[string]any) ratchet {
	if old == nil {
		return ratchet{}
	}
	return ratchet{common.NewCorrelatedObject(object, old, &model.Structural{Structural: v.schema})}
}

func (r ratchet) schemaOptions() []validation.ValidationOption {
	if r.object == nil {
		return nil
	}
	return []validation.ValidationOption{validation.WithRatcheting(r.object)}
}

func (r ratchet) ruleOptions() []cel.Option {
	if r.object == nil {
		return nil
	}
	return []cel.Option{cel.WithRatcheting(r.object)}
}
