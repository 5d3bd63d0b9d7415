import type { ComponentChildren } from 'preact'
import { EndpointMark } from '../../shell/endpoint-patterns.tsx'
import { printPercent } from '../../shell/format.ts'
import { Link } from '../../shell/link.tsx'
import { Message } from '../../shell/message.tsx'
import { printable } from '../../shell/printable.ts'
import { Table } from '../../shell/table.tsx'
import type { WhyChoice, WhyEndpoint, WhyExplanation, WhyStep } from './explanation.ts'
import {
  idOf,
  printCandidates,
  printClient,
  printDatabase,
  printDistance,
  printDraws,
  printFailover,
  printFate,
  printNearer,
  printOrigin,
  printOutcome,
  printPlace,
  printResult,
  printRung,
  printScope,
  printServed,
  printServer,
  printStep,
  printStored,
} from './words.ts'

interface ExplainedProps {
  readonly explanation: WhyExplanation
  /** A link that draws again. */
  readonly again: ComponentChildren
}

/** An explanation, step by step. */
export function Explained({ explanation, again }: ExplainedProps) {
  const { name, type, location, steps, end, answer, seed } = explanation
  return (
    <article class="why" aria-labelledby="why-result">
      <h2 id="why-result">{printable(printResult(explanation))}</h2>
      <ul class="why-answer" aria-label="Answer">
        {answer.map((record) => (
          <li key={record}>
            <code>{printable(record.replaceAll('\t', ' '))}</code>
          </li>
        ))}
      </ul>
      <p>
        {printable(end.text)}. Seed {seed}. {again}{' '}
        <Link view="map" parameters={{ name, type }}>
          Map of the name
        </Link>
      </p>
      <ol class="why-steps">
        <Section title="Client">
          <Line text={printClient(explanation)} />
          <Line text={printScope(explanation)} />
        </Section>
        <Section title="Location">
          <Line text={printPlace(location)} />
          {location?.databases.map((database) => (
            <Line key={database.file} text={printDatabase(database)} />
          ))}
        </Section>
        <Section title="Server block">
          <Line text={printServer(explanation)} />
          <Line text={printStored(explanation)} />
        </Section>
        {steps.map((step, i) => (
          // The same name and type can come twice.
          <Step key={i} step={step} />
        ))}
      </ol>
    </article>
  )
}

interface SectionProps {
  readonly title: string
  readonly children: ComponentChildren
}

function Section({ title, children }: SectionProps) {
  return (
    <li>
      <h3>{printable(title)}</h3>
      {children}
    </li>
  )
}

function Line({ text }: { readonly text: string }) {
  return text === '' ? null : <p>{printable(text)}</p>
}

function Step({ step }: { readonly step: WhyStep }) {
  const { endpoints, choice, notes } = step
  return (
    <Section title={printStep(step)}>
      {notes.map((note) => (
        <Message key={note} kind="info" text={note} />
      ))}
      {endpoints !== undefined && endpoints.length > 0 && (
        <Endpoints step={step} endpoints={endpoints} />
      )}
      {choice === undefined ? (
        <Line text="No choice by location or weight is needed." />
      ) : (
        <Choice choice={choice} endpoints={endpoints ?? []} />
      )}
      <Line text={printServed(step)} />
    </Section>
  )
}

interface EndpointsProps {
  readonly step: WhyStep
  readonly endpoints: readonly WhyEndpoint[]
}

function Endpoints({ step: { owner, type }, endpoints }: EndpointsProps) {
  const rows = endpoints.map((endpoint, index) => ({ endpoint, index }))
  return (
    <Table
      caption={printable(`Endpoints of ${owner} ${type}`)}
      rows={rows}
      keyOf={({ index }) => String(index)}
      attributesOf={({ endpoint }) => ({ 'data-chosen': String(endpoint.isChosen) })}
      columns={[
        {
          title: 'Endpoint',
          cell: ({ endpoint, index }) => (
            <>
              <EndpointMark index={index} />
              {printable(idOf(endpoint, index))}
            </>
          ),
        },
        { title: 'Targets', cell: ({ endpoint }) => <Targets endpoint={endpoint} /> },
        { title: 'Geo', cell: ({ endpoint }) => printable(placesOf(endpoint)) },
        { title: 'Weight', cell: ({ endpoint }) => endpoint.weight ?? '', isNumber: true },
        { title: 'Share', cell: ({ endpoint }) => printPercent(endpoint.share), isNumber: true },
        { title: 'Result', cell: ({ endpoint }) => printable(printFate(endpoint)) },
        {
          title: 'Record',
          cell: ({ endpoint }) => <code>{printable(printOrigin(endpoint))}</code>,
        },
        {
          title: 'More',
          cell: () => (
            <Link view="health" parameters={{ name: owner }}>
              Health
            </Link>
          ),
        },
      ]}
    />
  )
}

function Targets({ endpoint: { targets, alias, out } }: { readonly endpoint: WhyEndpoint }) {
  return (
    <>
      {printable(targets.join(', '))}
      {alias !== undefined && <small class="why-reason">from the alias {printable(alias)}</small>}
      {out.map(({ target, reason }) => (
        <small key={target} class="why-reason">
          {printable(`${target} is ${reason}`)}
        </small>
      ))}
    </>
  )
}

function placesOf(endpoint: WhyEndpoint): string {
  return [...endpoint.codes, printDistance(endpoint)].filter((text) => text !== '').join(', ')
}

interface ChoiceProps {
  readonly choice: WhyChoice
  readonly endpoints: readonly WhyEndpoint[]
}

function Choice({ choice, endpoints }: ChoiceProps) {
  const rows = choice.rungs.map((rung, index) => ({ rung, index }))
  const nearer = choice.rungs.flatMap((rung) => printNearer(rung, endpoints))
  return (
    <>
      <Table
        caption="Ladder: groups of endpoints, the most specific first"
        rows={rows}
        keyOf={({ index }) => String(index)}
        attributesOf={({ rung, index }) => ({
          'data-outcome': rung.outcome,
          ...(index === choice.decided ? { class: 'why-decided' } : {}),
        })}
        columns={[
          { title: 'Rung', cell: ({ rung }) => printable(printRung(rung)) },
          { title: 'Outcome', cell: ({ rung }) => printable(printOutcome(rung)) },
          { title: 'Candidates', cell: ({ rung }) => printable(printCandidates(rung, endpoints)) },
        ]}
      />
      {nearer.map((line) => (
        <Line key={line} text={line} />
      ))}
      <Line text={printFailover(choice)} />
      {printDraws(choice, endpoints).map((line) => (
        <Line key={line} text={`Draw: ${line}`} />
      ))}
    </>
  )
}
