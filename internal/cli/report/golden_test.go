package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFormats(t *testing.T) {
	for name, r := range map[string]*Report{"full": full(), "violations": violations(), "empty": {Command: "check"}} {
		t.Run(name, func(t *testing.T) {
			var annotations strings.Builder
			require.NoError(t, r.GitHub(&annotations))
			golden(t, name+".github.txt", annotations.String())
			log, err := r.SARIF()
			require.NoError(t, err)
			golden(t, name+".sarif", withoutRules(t, log))
			cases, err := r.JUnit(false)
			require.NoError(t, err)
			golden(t, name+".junit.xml", string(cases))
			quality, err := r.GitLab()
			require.NoError(t, err)
			golden(t, name+".gitlab.json", string(quality))
			golden(t, name+".md", r.Markdown(CommentLimit))
		})
	}
}
