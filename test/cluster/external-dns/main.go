// Command external-dns is external-dns with its webhook provider only.
//
//	external-dns FLAGS...  what `external-dns --provider=webhook FLAGS...` does, once a second
//
// The complete program also compiles the libraries of all clouds.
package main

import (
	"context"

	"os"
	"time"

	"github.com/go-logr/logr"
	log "github.com/sirupsen/logrus"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider"
	"sigs.k8s.io/external-dns/provider/webhook"
	"sigs.k8s.io/external-dns/registry"
	"sigs.k8s.io/external-dns/registry/noop"
	"sigs.k8s.io/external-dns/registry/txt"
	"sigs.k8s.io/external-dns/source"
	"sigs.k8s.io/external-dns/source/annotations"
	"sigs.k8s.io/external-dns/source/wrappers"
)

func main() {
	ctx := context.Background()
	cfg := externaldns.NewConfig()
	must(cfg.ParseFlags(os.Args[1:]))
	annotations.SetAnnotationPrefix(cfg.AnnotationPrefix)
	klog.SetLogger(logr.Discard())
	crlog.SetLogger(logr.Discard())

	sourceConfig, err := source.NewSourceConfig(cfg)
	must(err)
	endpoints, err := wrappers.Build(ctx, sourceConfig)
	must(err)
	filter := endpoint.NewDomainFilterWithExclusions(cfg.DomainFilter, cfg.DomainExclude)
	client, err := webhook.New(ctx, cfg, filter)
	must(err)
	open := map[string]func(*externaldns.Config, provider.Provider) (registry.Registry, error){
		"noop": noop.New,
		"txt":  txt.New,
	}[cfg.Registry]
	owned, err := open(cfg, client)
	must(err)
	for ; ; time.Sleep(cfg.Interval) {
		if err := runOnce(ctx, cfg, endpoints, owned, filter); err != nil {
			log.Error(err)
		}
	}
}

// What RunOnce of the package controller does, which imports the libraries of all clouds.
func runOnce(
	ctx context.Context,
	cfg *externaldns.Config,
	source source.Source,
	owned registry.Registry,
	filter *endpoint.DomainFilter,
) error {
	current, err := owned.Records(ctx)
	if err != nil {
		return err
	}
	wanted, err := source.Endpoints(ctx)
	if err != nil {
		return err
	}
	wanted, err = owned.AdjustEndpoints(wanted)
	if err != nil {
		return err
	}
	todo := (&plan.Plan{
		Policies:       []plan.Policy{plan.Policies[cfg.Policy]},
		Current:        current,
		Desired:        wanted,
		DomainFilter:   endpoint.MatchAllDomainFilters{filter, owned.GetDomainFilter()},
		ManagedRecords: cfg.ManagedDNSRecordTypes,
		ExcludeRecords: cfg.ExcludeDNSRecordTypes,
		OwnerID:        owned.OwnerID(),
	}).Calculate()
	if !todo.Changes.HasChanges() {
		log.Info("All records are already up to date")
		return nil
	}
	return owned.ApplyChanges(ctx, todo.Changes)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
