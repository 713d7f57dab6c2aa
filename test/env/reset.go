package env

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// savedFile has what a control plane of the pool stores when no test has used it. It
// is written at the end of the boot.
const savedFile = "saved.json"

// errNotClean means that what a test left cannot be removed.
var errNotClean = errors.New("the control plane cannot be reset")

// content is what etcd stores, by key.
type content map[string][]byte

const (
	definitions = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
	admission   = "/registry/admissionregistration.k8s.io/"
)

// volatile are keys that the control plane itself writes at any time.
var volatile = []string{
	"/registry/masterleases/", "/registry/leases/kube-system/", "/registry/serviceaccounts/kube-system/", "/registry/configmaps/kube-system/",
	"/registry/services/endpoints/default/kubernetes", "/registry/endpointslices/default/kubernetes", "/registry/flowschemas/",
	"/registry/prioritylevelconfigurations/", "/registry/servicecidrs/", "/registry/ipaddresses/10.0.0.1",
}

// renew makes a control plane of the pool as it was after its boot, and boots it if
// there is none or it is broken.
func (p plane) renew(ctx context.Context, o options) error {
	if _, err := os.Stat(p.file(savedFile)); err == nil {
		if err := p.reuse(ctx, o); err == nil || ctx.Err() != nil {
			return err
		}
	}
	if err := p.clear(); err != nil {
		return err
	}
	all := o
	all.controllers, all.bare, all.crds = true, false, nil
	if err := p.boot(ctx, all); err != nil {
		return errors.Join(err, p.clear())
	}
	if err := p.save(ctx); err != nil {
		return errors.Join(err, p.clear())
	}
	return p.reset(ctx, o.bare)
}

// clear stops a control plane and empties its folder.
func (p plane) clear() error {
	files, err := filepath.Glob(p.file("*"))
	errs := []error{err, p.stop()}
	for _, file := range files {
		errs = append(errs, os.RemoveAll(file))
	}
	return errors.Join(errs...)
}

// reuse resets a control plane whose API server may be suspended or stopped.
func (p plane) reuse(ctx context.Context, o options) error {
	if p.find(etcdProgram) == 0 || p.find(controllersProgram) == 0 {
		return ErrNoProcess
	}
	if err := p.signal(syscall.SIGCONT); errors.Is(err, ErrNoProcess) {
		if err := p.restart(apiServerProgram); err != nil {
			return err
		}
	}
	if err := p.awaitAPIServer(ctx); err != nil {
		return err
	}
	if o.controllers && p.argument(controllersProgram, "use-service-account-credentials") != strconv.FormatBool(o.accounts) {
		if err := errors.Join(p.end(controllersProgram, syscall.SIGKILL), p.bootControllers(o.accounts)); err != nil {
			return err
		}
	}
	return p.reset(ctx, o.bare)
}

// reset writes to etcd itself, of which the API server and the controllers learn by
// their watches: no object terminates, and no webhook is called.
func (p plane) reset(ctx context.Context, bare bool) error {
	want, err := p.saved(bare)
	if err != nil {
		return err
	}
	changed := make(map[string]bool)
	for range 10 { // a controller may write something once more
		now, err := p.content(ctx)
		if err != nil {
			return err
		}
		done := true
		for _, key := range slices.Backward(slices.Sorted(maps.Keys(now))) {
			if _, keep := want[key]; keep {
				continue
			}
			done, changed[key] = false, true
			if err := p.call(ctx, "/v3/kv/deleterange", map[string]any{"key": []byte(key)}, nil); err != nil {
				return err
			}
		}
		for key, value := range want {
			if bytes.Equal(now[key], value) {
				continue
			}
			done, changed[key] = false, true
			if err := p.call(ctx, "/v3/kv/put", map[string]any{"key": []byte(key), "value": value}, nil); err != nil {
				return err
			}
		}
		if done {
			return p.awaitReset(ctx, want, changed)
		}
	}
	return fmt.Errorf("%w: something goes on writing: %v", errNotClean, slices.Sorted(maps.Keys(changed)))
}

// save writes savedFile once the controllers work and nothing is written any more.
func (p plane) save(ctx context.Context) error {
	before := content{}
	deadline := time.Now().Add(Patience)
	for time.Now().Before(deadline) {
		now, err := p.content(ctx)
		if err != nil {
			return err
		}
		_, ready := now["/registry/services/specs/default/kubernetes"]
		for _, namespace := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
			_, exists := now["/registry/namespaces/"+namespace]
			ready = ready && exists
		}
		if ready && maps.EqualFunc(now, before, bytes.Equal) {
			data, err := json.Marshal(now)
			if err != nil {
				return fmt.Errorf("save what the control plane stores: %w", err)
			}
			return os.WriteFile(p.file(savedFile), data, 0o600)
		}
		before = now
		time.Sleep(2 * Poll)
	}
	return fmt.Errorf("%w: it goes on writing after its boot", errNotClean)
}

// saved reads savedFile, without CRDs if bare.
func (p plane) saved(bare bool) (content, error) {
	data, err := os.ReadFile(p.file(savedFile))
	if err != nil {
		return nil, fmt.Errorf("reset the control plane: %w", err)
	}
	var out content
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("reset the control plane: %w", err)
	}
	if bare {
		maps.DeleteFunc(out, func(key string, value []byte) bool {
			// The APIServices of CRDs are managed all the time, those of other groups once.
			return strings.HasPrefix(key, definitions) || strings.HasPrefix(key, "/registry/apiregistration.k8s.io/") &&
				bytes.Contains(value, []byte("automanaged")) && !bytes.Contains(value, []byte("onstart"))
		})
	}
	return out, nil
}

// content returns what etcd stores, without volatile keys.
func (p plane) content(ctx context.Context) (content, error) {
	var found struct {
		Keys []struct{ Key, Value []byte } `json:"kvs"`
	}
	prefix := map[string]any{"key": []byte("/registry/"), "range_end": []byte("/registry0")}
	if err := p.call(ctx, "/v3/kv/range", prefix, &found); err != nil {
		return nil, err
	}
	out := content{}
	for _, k := range found.Keys {
		key := string(k.Key)
		if !slices.ContainsFunc(volatile, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			out[key] = k.Value
		}
	}
	return out, nil
}

// call calls the JSON gateway of etcd.
func (p plane) call(ctx context.Context, path string, request, into any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("call etcd: %w", err)
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, p.etcd()+path, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("call etcd: %w", err)
	}
	response, err := http.DefaultClient.Do(call)
	if err != nil {
		return fmt.Errorf("call etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("call etcd: %s responded %s", path, response.Status)
	}
	if into == nil {
		into = &struct{}{}
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("read the response of etcd to %s: %w", path, err)
	}
	return nil
}

// awaitReset waits until the API server has observed that admission and CRDs changed.
func (p plane) awaitReset(ctx context.Context, want content, changed map[string]bool) error {
	config, _, err := p.sign("admin", []string{masters})
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("reset the control plane: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	hooks := false
	for key := range changed {
		hooks = hooks || strings.HasPrefix(key, admission)
		if name, is := strings.CutPrefix(key, definitions); is {
			if err := awaitServed(ctx, client, name, want[key]); err != nil {
				return err
			}
		}
	}
	if hooks {
		return awaitWebhooks(ctx, client)
	}
	return nil
}

// awaitServed waits until the API server serves the kind of a CRD, or if there is no
// CRD, does not.
func awaitServed(ctx context.Context, client kubernetes.Interface, name string, crd []byte) error {
	var definition struct {
		Spec struct {
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}
	plural, group, _ := strings.Cut(name, ".")
	var versions []string
	if crd != nil {
		if err := json.Unmarshal(crd, &definition); err != nil {
			return fmt.Errorf("reset the control plane: %w", err)
		}
		for _, v := range definition.Spec.Versions {
			if v.Served {
				versions = append(versions, v.Name)
			}
		}
	}
	return until(ctx, name+" is not as before", func() bool {
		for _, version := range versions {
			resources, err := client.Discovery().ServerResourcesForGroupVersion(group + "/" + version)
			if err != nil || !slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
				return false
			}
		}
		if len(versions) > 0 {
			return true
		}
		groups, err := client.Discovery().ServerGroups()
		if err != nil {
			return false
		}
		for _, g := range groups.Groups {
			for _, v := range g.Versions {
				if g.Name != group {
					continue
				}
				resources, err := client.Discovery().ServerResourcesForGroupVersion(v.GroupVersion)
				if err != nil || slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
					return false
				}
			}
		}
		return true
	})
}

// awaitWebhooks registers a webhook that does not respond, for one name, and waits
// until it is called: what was removed before is not called any more.
func awaitWebhooks(ctx context.Context, client kubernetes.Interface) error {
	const validating, mutating = "barrier-validating", "barrier-mutating"
	none, fail, url := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail, "https://127.0.0.1:1/"
	only := func(name string) []admissionregistrationv1.MatchCondition {
		return []admissionregistrationv1.MatchCondition{{Name: "one", Expression: "object.metadata.name == '" + name + "'"}}
	}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
	v, m := client.AdmissionregistrationV1().ValidatingWebhookConfigurations(), client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err := v.Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: validating},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: validating + ".example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url}, Rules: rules, FailurePolicy: &fail,
			SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, MatchConditions: only(validating),
		}},
	}, metav1.CreateOptions{})
	_, err2 := m.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: mutating},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: mutating + ".example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url}, Rules: rules, FailurePolicy: &fail,
			SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, MatchConditions: only(mutating),
		}},
	}, metav1.CreateOptions{})
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("reset the control plane: %w", err)
	}
	for _, name := range []string{validating, mutating} {
		if err := until(ctx, "the API server goes on calling webhooks", func() bool {
			_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err != nil && strings.Contains(err.Error(), name+".example.com")
		}); err != nil {
			return err
		}
	}
	return errors.Join(v.Delete(ctx, validating, metav1.DeleteOptions{}), m.Delete(ctx, mutating, metav1.DeleteOptions{}))
}

func until(ctx context.Context, problem string, condition func() bool) error {
	for !condition() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", errNotClean, problem)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
