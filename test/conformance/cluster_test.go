package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// controllerName and className are those of the implementation under test.
const (
	controllerName = "overrule.dev/conformance"
	className      = "overrule"
)

// cluster stores the objects of the tests, and holds a view of them. It sets what the
// API server and the controllers of a cluster set: creation times, generations, the
// pods of Deployments, and the status that follows from the view.
type cluster struct {
	client.Client

	net *network

	mu      sync.Mutex
	view    *snapshot.View
	created time.Time // of the newest object
}

func newCluster() (*cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kscheme.AddToScheme, apiextensionsv1.AddToScheme, gatewayv1.Install, gatewayv1beta1.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c := &cluster{view: &snapshot.View{}, created: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)}
	c.net = newNetwork()
	c.Client = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: c.create,
		Update: c.update,
		Patch:  c.patch,
		Delete: c.delete,
		Get:    c.get,
		List:   c.list,
	}).Build()
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: className}, Spec: gatewayv1.GatewayClassSpec{ControllerName: controllerName}}
	return c, c.Create(context.Background(), class)
}

// now returns the view of the objects.
func (c *cluster) now() *snapshot.View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view
}

// create sets the metadata that the API server sets. Each object is a second newer than
// the one before.
func (c *cluster) create(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	c.mu.Lock()
	c.created = c.created.Add(time.Second)
	created := c.created
	c.mu.Unlock()
	o.SetCreationTimestamp(metav1.NewTime(created))
	o.SetUID(types.UID(fmt.Sprint(created.Unix())))
	o.SetGeneration(1)
	if err := movePorts(o); err != nil {
		return err
	}
	if err := w.Create(ctx, o, opts...); err != nil {
		return err
	}
	return errors.Join(c.observe(ctx, w, o), c.createPods(ctx, o))
}

// movePorts moves the ports below 1024 on which network listens: other users than root
// cannot listen on those.
func movePorts(o client.Object) error {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || u.GetKind() != gateway.KindGateway && u.GetKind() != gateway.KindListenerSet {
		return nil
	}
	listeners, _, err := unstructured.NestedSlice(u.Object, "spec", "listeners")
	if err != nil {
		return err
	}
	for _, l := range listeners {
		fields, _ := l.(map[string]any)
		port, _ := fields["port"].(int64)
		switch fields["protocol"] {
		case "TCP", "TLS", "UDP":
			if port < 1024 {
				fields["port"] = port + 10000
			}
		}
	}
	return unstructured.SetNestedSlice(u.Object, listeners, "spec", "listeners")
}

func (c *cluster) update(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
	before, err := stored(ctx, w, o)
	if err != nil {
		return err
	}
	o.SetCreationTimestamp(before.GetCreationTimestamp())
	o.SetUID(before.GetUID())
	o.SetGeneration(before.GetGeneration() + 1)
	if err := w.Update(ctx, o, opts...); err != nil {
		return err
	}
	return c.observe(ctx, w, o)
}

func (c *cluster) patch(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if err := w.Patch(ctx, o, p, opts...); err != nil {
		return err
	}
	return c.update(ctx, w, o)
}

func (c *cluster) delete(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	if err := w.Delete(ctx, o, opts...); err != nil {
		return err
	}
	gvk, err := w.GroupVersionKindFor(o)
	if err != nil {
		return err
	}
	if err := c.apply(snapshot.Delete(api.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()})); err != nil {
		return err
	}
	if gvk.Kind == "Deployment" {
		return w.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(o.GetNamespace()), client.MatchingLabels{deploymentLabel: o.GetName()})
	}
	return nil
}

// get returns objects with the status that follows from the view.
func (c *cluster) get(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if err := w.Get(ctx, key, o, opts...); err != nil {
		return err
	}
	c.setStatus(o)
	return nil
}

func (c *cluster) list(ctx context.Context, w client.WithWatch, all client.ObjectList, opts ...client.ListOption) error {
	if err := w.List(ctx, all, opts...); err != nil {
		return err
	}
	if gateways, ok := all.(*gatewayv1.GatewayList); ok {
		for i := range gateways.Items {
			c.setStatus(&gateways.Items[i])
		}
	}
	return nil
}

func stored(ctx context.Context, w client.WithWatch, o client.Object) (client.Object, error) {
	before, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", o)
	}
	return before, w.Get(ctx, client.ObjectKeyFromObject(o), before)
}

// observe adds a written object to the view.
func (c *cluster) observe(ctx context.Context, w client.WithWatch, o client.Object) error {
	o, err := stored(ctx, w, o)
	if err != nil {
		return err
	}
	gvk, err := w.GroupVersionKindFor(o)
	if err != nil {
		return err
	}
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	object, err := snapshot.Decode(api.PolicyKind{Group: gvk.Group, Kind: gvk.Kind}, nil, data, 0)
	if errors.Is(err, snapshot.ErrKind) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.apply(snapshot.Put(object))
}

func (c *cluster) apply(change snapshot.Change) error {
	c.mu.Lock()
	c.view = c.view.With(change)
	view := c.view
	c.mu.Unlock()
	return c.net.listen(view)
}

const deploymentLabel = "deployment"

// createPods creates a ready pod for a Deployment.
func (c *cluster) createPods(ctx context.Context, o client.Object) error {
	data, err := json.Marshal(o)
	if err != nil || o.GetObjectKind().GroupVersionKind().Kind != "Deployment" {
		return err
	}
	var d appsv1.Deployment
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	with := maps.Clone(d.Spec.Template.Labels)
	with[deploymentLabel] = d.Name
	ip := c.net.podAddress()
	return c.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + "-5d8c7f-x2k4w", Labels: with},
		Spec:       d.Spec.Template.Spec,
		Status: corev1.PodStatus{
			PodIP:      ip,
			PodIPs:     []corev1.PodIP{{IP: ip}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	})
}

// pod returns a pod that serves a backend, or nil.
func (c *cluster) pod(ctx context.Context, backend api.Ref) *corev1.Pod {
	var s corev1.Service
	if backend.Group != "" || backend.Kind != gateway.KindService ||
		c.Get(ctx, client.ObjectKey{Namespace: backend.Namespace, Name: backend.Name}, &s) != nil {
		return nil
	}
	if len(s.Spec.Selector) == 0 {
		return c.manualEndpoint(ctx, &s)
	}
	var all corev1.PodList
	if err := c.List(ctx, &all, client.InNamespace(s.Namespace), client.MatchingLabels(s.Spec.Selector)); err != nil || len(all.Items) == 0 {
		return nil
	}
	return &all.Items[0]
}

// manualEndpoint returns a pod of the EndpointSlices of a Service without a selector, or
// nil.
func (c *cluster) manualEndpoint(ctx context.Context, s *corev1.Service) *corev1.Pod {
	var slices discoveryv1.EndpointSliceList
	if err := c.List(ctx, &slices, client.InNamespace(s.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: s.Name}); err != nil {
		return nil
	}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			var p corev1.Pod
			if c.Get(ctx, client.ObjectKey{Namespace: e.TargetRef.Namespace, Name: e.TargetRef.Name}, &p) == nil {
				return &p
			}
		}
	}
	return nil
}
