// Writes the dashboards for Grafana from the tables below: `node deploy/observability/dashboards.mjs`.
// A panel: [title, unit, query, legend]. Queries name only metrics of docs/reference/metrics.md.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const IN = '{job=~"$job",instance=~"$instance"}'
const rate = (metric, labels = '') =>
  `rate(${metric}{job=~"$job",instance=~"$instance"${labels}}[$__rate_interval])`

export const DASHBOARDS = {
  fleet: {
    title: 'Sextant: fleet',
    panels: [
      ['Servers that answer Prometheus', 'short', `sum by (job) (up${IN})`, '{{job}}'],
      ['Problems by kind', 'short', `sum by (kind) (sextant_problems${IN})`, '{{kind}}'],
      [
        'Queries',
        'reqps',
        `sum by (instance) (${rate('coredns_dns_requests_total')})`,
        '{{instance}}',
      ],
      [
        'Replies by code',
        'reqps',
        `sum by (rcode) (${rate('coredns_dns_responses_total')})`,
        '{{rcode}}',
      ],
      [
        'Time of 99 % of the queries',
        's',
        `histogram_quantile(0.99, sum by (le, instance) (${rate('coredns_dns_request_duration_seconds_bucket')}))`,
        '{{instance}}',
      ],
      [
        'Queries dropped',
        'reqps',
        `sum by (instance, reason) (${rate('sextant_dns_dropped_queries_total')})`,
        '{{instance}} {{reason}}',
      ],
      [
        'Processors in use',
        'short',
        `sum by (instance) (${rate('process_cpu_seconds_total')})`,
        '{{instance}}',
      ],
      [
        'Resident memory',
        'bytes',
        `sum by (instance) (process_resident_memory_bytes${IN})`,
        '{{instance}}',
      ],
      ['Versions', 'short', `count by (version) (coredns_build_info${IN})`, '{{version}}'],
    ],
  },
  zone: {
    title: 'Sextant: zones',
    panels: [
      ['Queries', 'reqps', `sum by (zone) (${rate('coredns_dns_requests_total')})`, '{{zone}}'],
      [
        'Queries by type',
        'reqps',
        `sum by (type) (${rate('coredns_dns_requests_total')})`,
        '{{type}}',
      ],
      [
        'Replies by code',
        'reqps',
        `sum by (zone, rcode) (${rate('coredns_dns_responses_total')})`,
        '{{zone}} {{rcode}}',
      ],
      [
        'Size of 95 % of the replies',
        'bytes',
        `histogram_quantile(0.95, sum by (le, zone) (${rate('coredns_dns_response_size_bytes_bucket')}))`,
        '{{zone}}',
      ],
      [
        'DNSRecords',
        'short',
        `sum by (zone, state) (sextant_kuadrant_records${IN})`,
        '{{zone}} {{state}}',
      ],
      ['Conflicts', 'short', `sum by (zone) (sextant_kuadrant_conflicts${IN})`, '{{zone}}'],
      [
        'Serial',
        'none',
        `max by (instance, zone) (sextant_kuadrant_serial${IN})`,
        '{{instance}} {{zone}}',
      ],
      [
        'Age of the records',
        's',
        `max by (instance, source) (sextant_kuadrant_source_age_seconds${IN})`,
        '{{instance}} {{source}}',
      ],
    ],
  },
  endpoint: {
    title: 'Sextant: endpoints',
    panels: [
      [
        'Answers by endpoint',
        'reqps',
        `sum by (owner, endpoint) (${rate('sextant_kuadrant_endpoint_answers_total')})`,
        '{{owner}} {{endpoint}}',
      ],
      [
        'Answers by geo code',
        'reqps',
        `sum by (tier) (${rate('sextant_kuadrant_endpoint_answers_total')})`,
        '{{tier}}',
      ],
      [
        'Share that is configured',
        'percentunit',
        `max by (owner, endpoint, tier) (sextant_kuadrant_endpoint_share${IN})`,
        '{{owner}} {{endpoint}} {{tier}}',
      ],
      [
        'Names without an endpoint in service',
        'short',
        `max by (zone, policy) (sextant_kuadrant_all_down${IN})`,
        '{{zone}} {{policy}}',
      ],
      ['Drained endpoints', 'short', `max by (zone) (sextant_kuadrant_drained${IN})`, '{{zone}}'],
      [
        'Probes by state',
        'short',
        `sum by (instance, state) (sextant_probes${IN})`,
        '{{instance}} {{state}}',
      ],
      [
        'Addresses that are down',
        'short',
        `sum by (record, address) (sextant_probe_down${IN})`,
        '{{record}} {{address}}',
      ],
      [
        'Time of 99 % of the checks',
        's',
        `histogram_quantile(0.99, sum by (le, instance) (${rate('sextant_probe_duration_seconds_bucket')}))`,
        '{{instance}}',
      ],
    ],
  },
  egress: {
    title: 'Sextant: egress',
    panels: [
      [
        'Pods with policies',
        'short',
        `sum by (instance) (sextant_egress_clients${IN})`,
        '{{instance}}',
      ],
      [
        'Addresses that names allow',
        'short',
        `sum by (instance) (sextant_egress_grants${IN})`,
        '{{instance}}',
      ],
      [
        'Answers with addresses',
        'reqps',
        `sum by (instance) (${rate('sextant_egress_answers_total')})`,
        '{{instance}}',
      ],
      [
        'Queries denied',
        'reqps',
        `sum by (instance) (${rate('sextant_egress_denied_queries_total')})`,
        '{{instance}}',
      ],
      [
        'Parts of policies without their effect',
        'short',
        `sum by (instance) (sextant_egress_policy_problems${IN})`,
        '{{instance}}',
      ],
      [
        'Replies that waited for nftables',
        'reqps',
        `sum by (instance) (${rate('sextant_egress_waits_total')})`,
        '{{instance}}',
      ],
      [
        'Replies that waited in vain',
        'reqps',
        `sum by (instance) (${rate('sextant_proxy_datapath_update_timeout_total')})`,
        '{{instance}}',
      ],
      [
        'Failures of nftables',
        'reqps',
        `sum by (instance) (${rate('sextant_egress_nft_failures_total')})`,
        '{{instance}}',
      ],
    ],
  },
  operator: {
    title: 'Sextant: operator',
    panels: [
      ['Leader', 'short', `sum by (instance) (sextant_operator_leading${IN})`, '{{instance}}'],
      [
        'Records that are published, and that are not',
        'short',
        `count by (job, ready) (label_replace(dns_provider_record_ready${IN} == 1, "ready", "yes", "", "") or label_replace(dns_provider_record_ready${IN} == 0, "ready", "no", "", ""))`,
        '{{ready}}',
      ],
      [
        'Records that wait',
        'short',
        `sum by (instance) (sextant_operator_queue_depth${IN})`,
        '{{instance}}',
      ],
      [
        'Reconciles',
        'reqps',
        `sum by (instance) (deriv(sextant_operator_reconciles${IN}[5m]))`,
        '{{instance}}',
      ],
      [
        'Failed reconciles',
        'short',
        `sum by (instance) (sextant_operator_reconcile_failures${IN})`,
        '{{instance}}',
      ],
      [
        'Writes to the API',
        'reqps',
        `sum by (kind) (${rate('sextant_operator_writes_total')})`,
        '{{kind}}',
      ],
      [
        'Watches that run',
        'short',
        `min by (collection) (sextant_operator_watch_up${IN})`,
        '{{collection}}',
      ],
    ],
  },
}

const WIDTH = 12
const HEIGHT = 8
/** Columns of a dashboard of Grafana. */
const COLUMNS = 24
const DATASOURCE = { type: 'prometheus', uid: '$datasource' }

const panel = ([title, unit, expr, legendFormat], i) => ({
  id: i + 1,
  type: 'timeseries',
  title,
  datasource: DATASOURCE,
  gridPos: {
    x: (i * WIDTH) % COLUMNS,
    y: Math.floor((i * WIDTH) / COLUMNS) * HEIGHT,
    w: WIDTH,
    h: HEIGHT,
  },
  fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
  targets: [{ refId: 'A', datasource: DATASOURCE, expr, legendFormat }],
})

const choice = (name, query) => ({
  name,
  type: 'query',
  datasource: DATASOURCE,
  query,
  refresh: 2,
  includeAll: true,
  multi: true,
  allValue: '.*',
})

/** The text of a dashboard. */
export function printDashboard(name) {
  const { title, panels } = DASHBOARDS[name]
  const list = [
    { name: 'datasource', type: 'datasource', query: 'prometheus' },
    choice('job', `label_values(${firstMetric(panels)}, job)`),
    choice('instance', `label_values(${firstMetric(panels)}{job=~"$job"}, instance)`),
  ]
  const dashboard = {
    uid: `sextant-${name}`,
    title,
    tags: ['sextant'],
    schemaVersion: 39,
    time: { from: 'now-1h', to: 'now' },
    refresh: '30s',
    templating: { list },
    panels: panels.map(panel),
  }
  return `${JSON.stringify(dashboard, null, 1)}\n`
}

/** A metric that each process of the dashboard has. */
const firstMetric = (panels) =>
  panels.map(([, , expr]) => /(?:sextant|coredns|dns)_[a-z_]+/.exec(expr)?.[0]).find(Boolean)

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const name of Object.keys(DASHBOARDS)) {
    writeFileSync(new URL(`dashboards/${name}.json`, import.meta.url), printDashboard(name))
  }
}
