import t from 'tap'
import { CLUSTER_TEST_MS } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { address, DelegationSite, type Found } from './delegation-site.ts'

const ZONE = 'k.example.com'
const HOST = `app.${ZONE}`
const READY = /^True ProviderSuccess: Provider ensured the dns record$/
const LEAVE_MS = 4000

t.setTimeout(CLUSTER_TEST_MS)

/** API servers for all: each takes ten seconds to start. */
t.test('clusters that publish each other', needsCluster(), async (t) => {
  const leave = `--cluster-leave-time=${LEAVE_MS / 1000}s`
  const dublin = await DelegationSite.start(t, 'dublin', leave)
  const milan = await DelegationSite.start(t, 'milan', leave, '--silent-site=remove 20s')
  const boston = await DelegationSite.start(t, 'boston', '--delegation-role=secondary')
  const sites = [dublin, milan, boston]
  const primaries = [dublin, milan]
  for (const site of primaries) await site.provide(ZONE)
  for (const site of sites) await site.operate()
  const serve = (want: string) => Promise.all(primaries.map((site) => site.serves(want)))

  await t.test('a record of a secondary is served by the primary that follows it', async (t) => {
    await dublin.follow(boston)
    await boston.create('app', HOST, [address(HOST, '192.0.2.3')])
    await dublin.serves(`${HOST} A 192.0.2.3`)
    await boston.says('app', READY)
    t.strictSame(await boston.authoritative(), [])
    t.strictSame(await milan.authoritative(), [], 'and by no other')
    const { metadata, status } = await boston.read('app')
    t.strictSame(metadata.finalizers, ['kuadrant.io/dns-record'])
    t.equal(status.zoneID, undefined, 'it has no zone of its own')
    const [made] = await dublin.authoritative()
    t.match(status.remoteRecordStatuses, {
      [dublin.uid]: {
        zoneID: made.metadata.name,
        zoneDomainName: HOST,
        domainOwners: [status.ownerID],
        observedGeneration: metadata.generation,
        endpoints: [address(HOST, '192.0.2.3')],
      },
    })
    const managers = metadata.managedFields.map(({ manager }: Found) => manager)
    t.equal(managers.filter((name: string) => name.startsWith('sextant-primary-')).length, 1)
  })

  await t.test('two primaries and a secondary come to the same', async () => {
    await dublin.follow(milan)
    await milan.follow(dublin)
    await milan.follow(boston)
    await dublin.create('app', HOST, [address(HOST, '192.0.2.1')])
    await milan.create('app', HOST, [address(HOST, '192.0.2.2', '192.0.2.3')])
    await serve(`${HOST} A 192.0.2.1,192.0.2.2,192.0.2.3`)
    for (const site of sites) await site.says('app', READY)
    await boston.wait('the word of both', async () => {
      const words = await Promise.all(primaries.map((site) => boston.readyBy('app', site)))
      return words.every((word) => READY.test(word))
    })
    await dublin.wait('the word of milan', async () => {
      return READY.test(await dublin.readyBy('app', milan))
    })
    await boston.wait('all owners', async () => {
      return (await boston.read('app')).status?.domainOwners?.length === 3
    })
    await dublin.wait('the metrics', async () => {
      const { operator } = dublin
      const looks = 'dns_provider_remote_record_reconcile_count'
      const one = 'cluster="boston",dns_record_name="app",dns_record_namespace="gateways"'
      return (
        (await operator.metric('dns_provider_active_multi_cluster_count')) === 2 &&
        (await operator.metric('dns_provider_remote_records{cluster="milan"}')) === 1 &&
        ((await operator.metric(`${looks}{${one}}`)) ?? 0) > 0
      )
    })
  })

  await t.test('an update goes to all, and a target stays that others have', async () => {
    await boston.edit('app', [address(HOST, '192.0.2.9')])
    await serve(`${HOST} A 192.0.2.1,192.0.2.2,192.0.2.3,192.0.2.9`)
    await milan.edit('app', [address(HOST, '192.0.2.2')])
    await serve(`${HOST} A 192.0.2.1,192.0.2.2,192.0.2.9`)
    await boston.says('app', READY)
  })

  await t.test('edits of an authoritative record by others are undone', async () => {
    const [made] = await milan.authoritative()
    await milan.edit(made.metadata.name, [])
    await milan.serves(`${HOST} A 192.0.2.1,192.0.2.2,192.0.2.9`)
    await milan.remove(made.metadata.name)
    await milan.serves(`${HOST} A 192.0.2.1,192.0.2.2,192.0.2.9`)
  })

  await t.test('refusals of the primaries are in the status of the record', async () => {
    await boston.edit('app', [{ dnsName: HOST, recordType: 'CNAME', targets: ['x.example.org'] }])
    await boston.says('app', /^False ProviderError: cluster .*record type conflict, cannot update/)
    await boston.edit('app', [address(HOST, '192.0.2.999')])
    await boston.says('app', /^False ValidationError: validation of DNSRecord failed: /)
    await boston.edit('app', [address(HOST, '192.0.2.9')])
    await boston.says('app', READY)
    await boston.create('stray', 'www.example.net', [address('www.example.net', '192.0.2.9')])
    await boston.says(
      'stray',
      /^False DNSProviderError: cluster .*no zone for host: www.example.net/,
    )
    await boston.remove('stray')
    await boston.isGone('stray')
    await serve(`${HOST} A 192.0.2.1,192.0.2.2,192.0.2.9`)
  })

  await t.test('of two records with one owner id, the older one is the owner', async () => {
    const twin = `twin.${ZONE}`
    const more = { ownerID: 'the-same' }
    await boston.create('twin', twin, [address(twin, '192.0.2.21')], more)
    const others = `${HOST} A 192.0.2.1,192.0.2.2,192.0.2.9`
    await serve(`${others}; ${twin} A 192.0.2.21`)
    // Times of creation are whole seconds.
    const { creationTimestamp } = (await boston.read('twin')).metadata
    await milan.wait(
      'another second',
      async () => Date.now() > Date.parse(creationTimestamp) + 1000,
    )
    await milan.create('twin', twin, [address(twin, '192.0.2.22')], more)
    const older = 'owner conflict, owner id .the-same. is that of the older record gateways/twin'
    await milan.says('twin', new RegExp(`^False ProviderError: .*${older} of cluster boston$`))
    await serve(`${others}; ${twin} A 192.0.2.21`)
    await boston.remove('twin')
    await serve(`${others}; ${twin} A 192.0.2.22`)
    await milan.says('twin', READY)
    await milan.remove('twin')
    await serve(others)
  })

  await t.test('an operator that is started anew writes nothing', async (t) => {
    const versions = async () => (await Promise.all(sites.map((site) => site.versions()))).flat()
    const isIdle = async () => {
      const before = await versions()
      const series = ['depth', 'running'].map((name) => `sextant_operator_queue_${name}`)
      const counts = sites.flatMap(({ operator }) => series.map((name) => operator.metric(name)))
      const isQuiet = (await Promise.all(counts)).every((count) => count === 0)
      return isQuiet && JSON.stringify(await versions()) === JSON.stringify(before)
    }
    const knowAllOwners = async () => {
      const records = await Promise.all(sites.map((site) => site.read('app')))
      return records.every(({ metadata, status }) =>
        [status, ...Object.values<Found>(status.remoteRecordStatuses)].every(
          ({ observedGeneration, domainOwners }) =>
            observedGeneration === metadata.generation && domainOwners.length === sites.length,
        ),
      )
    }
    // Who else owns a host is written a while after all else.
    await dublin.wait('all to know all owners', knowAllOwners)
    await dublin.wait('quiet', isIdle)
    for (const site of sites) t.equal(await site.operator.stop(), 0)
    const before = await versions()
    for (const site of sites) await site.operate()
    const isSeen = async (site: DelegationSite, cluster: string) => {
      const labels = `cluster="${cluster}",dns_record_name="app",dns_record_namespace="gateways"`
      const series = `dns_provider_remote_record_reconcile_count{${labels}}`
      return ((await site.operator.metric(series)) ?? 0) > 0
    }
    for (const [site, others] of [
      [dublin, ['milan', 'boston']],
      [milan, ['dublin', 'boston']],
    ] as const) {
      for (const other of others) await site.wait(`a look at ${other}`, () => isSeen(site, other))
    }
    await dublin.wait('quiet', isIdle)
    t.strictSame(await versions(), before)
  })

  await t.test('an invalid Secret is reported, and disturbs no other cluster', async (t) => {
    const good = JSON.parse(await boston.remoteKubeconfig())
    good.users[0].user = { exec: { command: '/bin/false' } }
    await dublin.putKubeconfig('harmful', JSON.stringify(good))
    await dublin.putKubeconfig('same', await boston.remoteKubeconfig())
    await dublin.putKubeconfig('self', await dublin.remoteKubeconfig())
    const note = async (name: string): Promise<string> => {
      const events = '/apis/events.k8s.io/v1/namespaces/sextant-system/events'
      const { items } = await dublin.cluster.must('GET', events)
      return items
        .filter(({ regarding }: Found) => regarding.kind === 'Secret' && regarding.name === name)
        .map(({ type, reason, note }: Found) => `${type} ${reason}: ${note}`)
        .join('\n')
    }
    const hasEvent = (name: string, want: RegExp) =>
      dublin.wait(`${want} of ${name}`, async () => want.test(await note(name)))
    await hasEvent(
      'harmful',
      /^Warning RemoteClusterFault: its kubeconfig has users\[\]\.user\.exec: /,
    )
    await hasEvent(
      'same',
      /^Warning RemoteClusterFault: Secret boston has a kubeconfig of the same cluster$/,
    )
    await hasEvent(
      'self',
      /^Warning RemoteClusterFault: the kubeconfig leads to this cluster itself$/,
    )
    t.match((await dublin.operator.ready()).text, /cluster harmful: its kubeconfig has users/)
    t.equal(await dublin.operator.metric('dns_provider_active_multi_cluster_count'), 2)
    for (const name of ['harmful', 'same', 'self']) {
      await dublin.cluster.must('DELETE', dublin.secrets(name))
    }
    await boston.edit('app', [address(HOST, '192.0.2.8')])
    await serve(`${HOST} A 192.0.2.1,192.0.2.2,192.0.2.8`)
  })

  await t.test(
    'a cluster is away and comes back: its endpoints stay, unless silent-site says otherwise',
    async (t) => {
      const up = 'sextant_operator_cluster_up{cluster="boston"}'
      await boston.cluster.killServer()
      await dublin.wait('boston to be missed', async () => (await dublin.operator.metric(up)) === 0)
      await milan.serves(`${HOST} A 192.0.2.1,192.0.2.2`)
      await milan.edit('app', [address(HOST, '192.0.2.4')])
      await dublin.serves(`${HOST} A 192.0.2.1,192.0.2.4,192.0.2.8`)
      await milan.serves(`${HOST} A 192.0.2.1,192.0.2.4`)
      t.match((await dublin.operator.ready()).text, /cluster boston: /)
      await boston.cluster.startServer()
      await boston.edit('app', [address(HOST, '192.0.2.7')])
      await serve(`${HOST} A 192.0.2.1,192.0.2.4,192.0.2.7`)
      await dublin.wait('boston', async () => (await dublin.operator.metric(up)) === 1)
    },
  )

  await t.test(
    'a record is deleted while a primary is dead: at once if a flag allows it',
    async (t) => {
      await milan.operator.kill()
      await boston.remove('app')
      await boston.says('app', /^False ProviderEndpointsDeletion: .*waiting for cluster .* until /)
      await dublin.serves(`${HOST} A 192.0.2.1,192.0.2.4`)
      await boston.wait('the word of dublin', async () => {
        return /^False ProviderEndpointsRemoved: /.test(await boston.readyBy('app', dublin))
      })
      await boston.annotate('app', { 'sextant.io/let-go': 'true' })
      await boston.isGone('app')
      t.match(await milan.served(), '192.0.2.7', 'the dead one knows nothing of it')
      await milan.operate()
      await milan.serves(`${HOST} A 192.0.2.1,192.0.2.4`)
    },
  )

  await t.test('nameservers of several clusters, and a wildcard', async () => {
    const ns = (...names: readonly string[]) => {
      const targets = names.map((name) => `${name}.example.org`)
      return [{ dnsName: ZONE, recordType: 'NS', recordTTL: 60, targets }]
    }
    await dublin.create('ns', ZONE, ns('ns1.dublin'))
    await milan.create('ns', ZONE, ns('ns1.milan'))
    const others = `${HOST} A 192.0.2.1,192.0.2.4`
    await serve(`${others}; ${ZONE} NS ns1.dublin.example.org,ns1.milan.example.org`)
    await dublin.edit('ns', ns('ns1.dublin', 'ns2.dublin'))
    const both = 'ns1.dublin.example.org,ns1.milan.example.org,ns2.dublin.example.org'
    await serve(`${others}; ${ZONE} NS ${both}`)
    await dublin.remove('ns')
    await serve(`${others}; ${ZONE} NS ns1.milan.example.org`)
    await milan.remove('ns')
    await serve(others)
    const wild = `w.${ZONE}`
    await milan.create('wild', `*.${wild}`, [address(`*.${wild}`, '192.0.2.5')])
    await boston.create('wild', wild, [address(wild, '192.0.2.6')])
    await serve(`*.${wild} A 192.0.2.5; ${others}; ${wild} A 192.0.2.6`)
  })

  await t.test('a cluster leaves: its endpoints go where it has no Secret any more', async () => {
    const wild = `w.${ZONE}`
    await dublin.cluster.must('DELETE', dublin.secrets('boston'))
    await dublin.serves(`*.${wild} A 192.0.2.5; ${HOST} A 192.0.2.1,192.0.2.4`)
    await milan.serves(`*.${wild} A 192.0.2.5; ${HOST} A 192.0.2.1,192.0.2.4; ${wild} A 192.0.2.6`)
    // Accounts that Kuadrant makes may not ask which cluster it is.
    const role = '/apis/rbac.authorization.k8s.io/v1/clusterroles/sextant-remote-cluster'
    const { rules } = await boston.cluster.must('GET', role)
    const fewer = rules.filter(({ apiGroups }: Found) => apiGroups[0] === 'kuadrant.io')
    await boston.cluster.must('PATCH', role, { rules: fewer })
    await dublin.follow(boston)
    await dublin.serves(`*.${wild} A 192.0.2.5; ${HOST} A 192.0.2.1,192.0.2.4; ${wild} A 192.0.2.6`)
  })

  await t.test('nothing is left behind', async (t) => {
    for (const site of primaries) await site.remove('app')
    await milan.remove('wild')
    await boston.remove('wild')
    for (const site of sites) {
      await site.wait('the end', async () => (await site.list()).length === 0)
    }
    for (const site of sites) t.equal(await site.operator.stop(), 0)
  })
})
