/** The reply of `POST /v1/explain`: the members that the page shows. */
export interface WhyExplanation {
  readonly name: string
  readonly type: string
  readonly seed: number
  readonly client: { readonly address: string; readonly source: string; readonly reason: string }
  readonly server: {
    readonly address: string
    readonly zone: string
    readonly view: string
    readonly directive: string
  }
  readonly stored?: { readonly ageSeconds: number; readonly lifetimeSeconds: number } | undefined
  readonly location?: WhyLocation | undefined
  readonly steps: readonly WhyStep[]
  readonly end: { readonly kind: string; readonly text: string }
  readonly answer: readonly string[]
  readonly rcode: string
  readonly scope?: { readonly bits: number; readonly reason: string } | undefined
}

export interface WhyLocation {
  readonly databases: readonly WhyDatabase[]
  readonly net: string
  readonly asn: string
  readonly subdivisions: readonly string[]
  readonly country: string
  readonly continent: string
  readonly coordinates: string
}

export interface WhyDatabase {
  readonly file: string
  readonly type: string
  readonly built: string
  readonly prefix: string
  readonly isIgnored: boolean
}

export interface WhyStep {
  readonly name: string
  readonly owner: string
  readonly type: string
  readonly zone: string
  readonly serial?: number | undefined
  readonly rdata: readonly string[]
  readonly ttlSeconds: number
  readonly ttlReason: string
  readonly endpoints?: readonly WhyEndpoint[] | undefined
  readonly choice?: WhyChoice | undefined
  readonly notes: readonly string[]
}

export interface WhyEndpoint {
  readonly record: string
  readonly origin: WhyOrigin
  readonly setIdentifier: string
  readonly codes: readonly string[]
  readonly location: string
  readonly distanceKm?: number | undefined
  readonly weight?: number | undefined
  readonly targets: readonly string[]
  readonly alias?: string
  readonly out: readonly { readonly target: string; readonly reason: string }[]
  readonly dropped: string
  readonly share: number
  readonly isChosen: boolean
}

/** `file` and `line` of a manifest; `site` and `peers` of peers. */
interface WhyOrigin {
  readonly kind: string
  readonly file?: string
  readonly line?: number
  readonly site?: string
  readonly peers?: readonly {
    readonly peer: string
    readonly site: string
    readonly ageSeconds: number
  }[]
}

export interface WhyChoice {
  readonly rungs: readonly WhyRung[]
  readonly decided: number
  readonly draw?: WhyDraw | undefined
  readonly picks?:
    | readonly { readonly endpoint: number; readonly draw?: WhyDraw | undefined }[]
    | undefined
  readonly isSticky: boolean
  readonly stickyPrefix?: string | undefined
  readonly failover?:
    | { readonly order: readonly string[]; readonly serving: string; readonly isClosed: boolean }
    | undefined
}

export interface WhyDraw {
  readonly value: number
  readonly below: number
}

export interface WhyRung {
  readonly rung: string
  readonly code: string
  readonly outcome: string
  readonly nearest?: string | undefined
  readonly nearer?: readonly { readonly endpoint: number; readonly reason: string }[] | undefined
  readonly candidates: readonly WhyCandidate[]
}

export interface WhyCandidate {
  readonly endpoint: number
  readonly weight?: number | undefined
  readonly share: number
  readonly isStandby: boolean
  readonly rank?: number | undefined
}
