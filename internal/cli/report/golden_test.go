package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/cli/printers"
)

// extensions are the ends of the golden files of a format.
var extensions = map[printers.Format]string{"github": "github.txt", "sarif": "sarif", "junit": "junit.xml", "gitlab": "gitlab.json", "markdown": "md"}

func TestFormats(t *testing.T) {
	for name, r := range map[string]*Report{"full": full(), "violations": violations(), "empty": {Command: "check"}} {
		t.Run(name, func(t *testing.T) {
			for _, f := range Formats {
				text, err := f.Text(r)
				require.NoError(t, err)
				if f.Name == "sarif" {
					text = withoutRules(t, text)
				}
				golden(t, name+"."+extensions[f.Name], string(text))
			}
		})
	}
}
