// Generate writes the CustomResourceDefinitions that the plugin embeds: those of Gateway
// API, of the experimental channel, and Overrule's own, without descriptions.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(context.Background(), "builtin", filepath.Join("..", "..", "..", "deploy", "crds")); err != nil {
		log.Fatal(err)
	}
}

// run replaces the files of a folder.
func run(ctx context.Context, folder, own string) error {
	files, err := definitions(ctx, own)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("empty %s: %w", folder, err)
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("create %s: %w", folder, err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// definitions returns the files to embed by their names, which name the group and the
// kind.
func definitions(ctx context.Context, own string) (map[string][]byte, error) {
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return nil, fmt.Errorf("find the module of Gateway API: %w", err)
	}
	out := make(map[string][]byte)
	for _, folder := range []string{filepath.Join(string(bytes.TrimSpace(module)), "config", "crd", "experimental"), own} {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			return nil, errors.Join(fmt.Errorf("no files in %s", folder), err)
		}
		for _, file := range files {
			if err := addDefinition(out, file); err != nil {
				return nil, fmt.Errorf("read %s: %w", file, err)
			}
		}
	}
	return out, nil
}

// addDefinition adds the definition of a file, unless the file has another kind.
func addDefinition(out map[string][]byte, file string) error {
	text, err := os.ReadFile(file) //nolint:gosec // the files of two folders
	if err != nil {
		return err
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	var crd definition
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&crd); err != nil || crd.Kind != "CustomResourceDefinition" {
		return err
	}
	for _, v := range crd.Spec.Versions {
		v.Schema.OpenAPIV3Schema = strip(v.Schema.OpenAPIV3Schema)
	}
	compact, err := json.Marshal(crd)
	out[crd.Spec.Group+"_"+crd.Spec.Names["kind"].(string)+".json"] = append(compact, '\n') //nolint:forcetypeassert // a definition has a kind
	return err
}

// definition is what is embedded of a definition.
type definition struct {
	Kind string `json:"kind"`
	Spec struct {
		Group    string         `json:"group"`
		Names    map[string]any `json:"names"`
		Scope    string         `json:"scope"`
		Versions []*version     `json:"versions"`
	} `json:"spec"`
}

type version struct {
	Name         string         `json:"name"`
	Served       bool           `json:"served"`
	Storage      bool           `json:"storage"`
	Subresources map[string]any `json:"subresources,omitempty"`
	Schema       struct {
		OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
	} `json:"schema"`
}

// strip removes the documentation of a schema.
func strip(schema map[string]any) map[string]any {
	for name, value := range schema {
		switch name {
		case "description", "title", "externalDocs", "example":
			delete(schema, name)
		case "properties":
			for _, property := range value.(map[string]any) { //nolint:forcetypeassert // of a schema
				strip(property.(map[string]any)) //nolint:forcetypeassert // of a schema
			}
		case "items", "additionalProperties", "not":
			if child, ok := value.(map[string]any); ok {
				strip(child)
			}
		case "allOf", "anyOf", "oneOf":
			for _, child := range value.([]any) { //nolint:forcetypeassert // of a schema
				strip(child.(map[string]any)) //nolint:forcetypeassert // of a schema
			}
		}
	}
	return schema
}
