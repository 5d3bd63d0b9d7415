import { useMemo, useState } from 'preact/hooks'
import type { WhatIfChange, WhatIfReply } from '../../../../../plugin/admin-what-if.ts'
import { printNumber, printPercent } from '../../shell/format.ts'
import { Link } from '../../shell/link.tsx'
import { printable } from '../../shell/printable.ts'
import { Table } from '../../shell/table.tsx'
import { type Draft, previewOf, whatIfOf } from './order.ts'
import { TwoMaps } from './two-maps.tsx'

const KINDS = {
  added: 'is added',
  removed: 'is removed',
  changed: 'changes',
  leads: 'leads to a change',
} as const
/** Countries that a cell lists. */
const COUNTRIES_MAX = 6

interface Row {
  readonly change: WhatIfChange
  readonly clients: string
  readonly before: string
  readonly after: string
}

/** What an order would change: names, clients and their answers before and after. */
export function Preview({ reply, draft }: { readonly reply: WhatIfReply; readonly draft: Draft }) {
  const { changes, changesOmitted, records, recordsOmitted, notes } = reply
  const [chosen, setChosen] = useState<WhatIfChange | undefined>(undefined)
  const order = useMemo(() => whatIfOf(draft), [draft])
  const shown = chosen !== undefined && changes.includes(chosen) ? chosen : changes[0]
  return (
    <>
      <p>
        {printNumber(changes.length + changesOmitted)} names change, of {printNumber(records)}{' '}
        DNSRecords.
        {recordsOmitted > 0 && ` ${printNumber(recordsOmitted)} more are not compared.`}
        {changesOmitted > 0 && ` ${printNumber(changesOmitted)} names are not listed.`}
      </p>
      {notes.length > 0 && (
        <ul>
          {notes.map((note) => (
            <li key={note}>{printable(note)}</li>
          ))}
        </ul>
      )}
      <Table
        caption="Answers that change"
        rows={changes.flatMap(rowsOf)}
        keyOf={({ change, clients }) => `${change.block} ${change.name} ${change.type} ${clients}`}
        empty="No answer changes."
        columns={[
          {
            title: 'Name',
            cell: ({ change }) => <Name change={change} draft={draft} show={setChosen} />,
          },
          { title: 'Change', cell: ({ change }) => KINDS[change.kind] },
          { title: 'Clients', cell: ({ clients }) => printable(clients) },
          { title: 'Before', cell: ({ before }) => printable(before) },
          { title: 'After', cell: ({ after }) => printable(after) },
          { title: 'Share', cell: ({ change }) => printPercent(change.share), isNumber: true },
          { title: 'Countries', cell: ({ change }) => printable(printCountries(change)) },
        ]}
      />
      {shown !== undefined && order !== undefined && (
        <TwoMaps name={shown.name} type={shown.type} order={order} />
      )}
    </>
  )
}

interface NameProps {
  readonly change: WhatIfChange
  readonly draft: Draft
  readonly show: (change: WhatIfChange) => void
}

function Name({ change, draft, show }: NameProps) {
  const { name, type } = change
  const text = printable(`${name} ${type}`)
  const parameters = previewOf(draft)
  return (
    <>
      {text}{' '}
      <button type="button" aria-label={`Maps of ${text}`} onClick={() => show(change)}>
        Maps
      </button>{' '}
      {parameters !== undefined && (
        <Link view="map" parameters={{ name, type, ...parameters }}>
          Large map after it
        </Link>
      )}
    </>
  )
}

function rowsOf(change: WhatIfChange): Row[] {
  const { tiers, ttl, via } = change
  const rows = tiers.map(({ clients, before, after }) => {
    return { change, clients, before: before || 'none', after: after || 'none' }
  })
  if (ttl !== undefined) {
    const [before, after] = [`TTL ${ttl.before}`, `TTL ${ttl.after}`]
    rows.push({ change, clients: 'all clients', before, after })
  }
  if (rows.length > 0) return rows
  const after = via.length > 0 ? `through ${via.join(', ')}` : 'other clients than before'
  return [{ change, clients: 'all clients', before: '', after }]
}

function printCountries({ countries }: WhatIfChange): string {
  const texts = countries.slice(0, COUNTRIES_MAX).map(({ code, ipv4, ipv6 }) => {
    return `${code || 'unknown'} ${printPercent(Math.max(ipv4, ipv6))}`
  })
  const more = countries.length - texts.length
  return `${texts.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
