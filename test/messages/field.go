package messages

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Fields returns field errors without their details, such as
// "spec.levels[1]: Unsupported value: "Pod"". It compares the full text of err with the
// golden file.
func Fields(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		Golden(t)
		return nil
	}
	Golden(t, err.Error())
	all := []error{err}
	if several, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		all = several.Errors()
	}
	out := make([]string, 0, len(all))
	for _, one := range all {
		var of *field.Error
		if assert.ErrorAs(t, one, &of) {
			out = append(out, withoutDetail(of))
		}
	}
	return out
}

// List is Fields for a list of errors, each of which is a line of the golden file.
func List(t testing.TB, errs field.ErrorList) []string {
	t.Helper()
	Golden(t)
	var out []string
	for _, err := range errs {
		Golden(t, err.Error())
		out = append(out, withoutDetail(err))
	}
	return out
}

func withoutDetail(err *field.Error) string {
	short := *err
	short.Detail = ""
	return short.Error()
}
