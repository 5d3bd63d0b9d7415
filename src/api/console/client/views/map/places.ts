/** ISO 3166-1 alpha-2 and numeric codes of the countries that have a shape. */
const NUMBERS = `
  AE784 AF004 AL008 AM051 AO024 AQ010 AR032 AT040 AU036 AZ031 BA070 BD050 BE056 BF854 BG100 BI108
  BJ204 BN096 BO068 BR076 BS044 BT064 BW072 BY112 BZ084 CA124 CD180 CF140 CG178 CH756 CI384 CL152
  CM120 CN156 CO170 CR188 CU192 CY196 CZ203 DE276 DJ262 DK208 DO214 DZ012 EC218 EE233 EG818 EH732
  ER232 ES724 ET231 FI246 FJ242 FK238 FR250 GA266 GB826 GE268 GH288 GL304 GM270 GN324 GQ226 GR300
  GT320 GW624 GY328 HN340 HR191 HT332 HU348 ID360 IE372 IL376 IN356 IQ368 IR364 IS352 IT380 JM388
  JO400 JP392 KE404 KG417 KH116 KP408 KR410 KW414 KZ398 LA418 LB422 LK144 LR430 LS426 LT440 LU442
  LV428 LY434 MA504 MD498 ME499 MG450 MK807 ML466 MM104 MN496 MR478 MW454 MX484 MY458 MZ508 NA516
  NC540 NE562 NG566 NI558 NL528 NO578 NP524 NZ554 OM512 PA591 PE604 PG598 PH608 PK586 PL616 PR630
  PS275 PT620 PY600 QA634 RO642 RS688 RU643 RW646 SA682 SB090 SD729 SE752 SI705 SK703 SL694 SN686
  SO706 SR740 SS728 SV222 SY760 SZ748 TD148 TF260 TG768 TH764 TJ762 TL626 TM795 TN788 TR792 TT780
  TW158 TZ834 UA804 UG800 US840 UY858 UZ860 VE862 VN704 VU548 XK983 YE887 ZA710 ZM894 ZW716
`

/** Countries that are too small for a shape: code, longitude and latitude of their centre. */
const DOTS = `
  CV -24.0 16.0; KM 43.7 -11.9; MU 57.6 -20.3; RE 55.5 -21.1; SC 55.5 -4.7; SH -9.7 -12.4;
  ST 6.7 0.4; YT 45.2 -12.8; BV 3.4 -54.4; GS -36.5 -54.5; HM 73.5 -53.1; BH 50.5 26.0;
  CC 96.8 -12.2; HK 114.1 22.4; IO 72.4 -7.3; MO 113.5 22.2; MV 73.5 3.7; SG 103.8 1.4; AD 1.6 42.5;
  AX 20.0 60.2; FO -6.9 62.1; GG -2.6 49.5; GI -5.3 36.1; IM -4.5 54.2; JE -2.1 49.2; LI 9.5 47.1;
  MC 7.4 43.8; MT 14.4 35.9; SJ 16.0 78.5; SM 12.5 43.9; VA 12.4 41.9; AG -61.8 17.3; AI -63.1 18.2;
  AW -70.0 12.5; BB -59.6 13.2; BL -62.8 17.9; BM -64.8 32.3; BQ -68.3 12.2; CW -69.0 12.2;
  DM -61.4 15.4; GD -61.7 12.1; GP -61.6 16.2; KN -62.7 17.3; KY -80.9 19.4; LC -61.0 13.9;
  MF -63.1 18.1; MQ -61.0 14.7; MS -62.2 16.7; PM -56.3 46.9; SX -63.1 18.1; TC -72.0 21.8;
  VC -61.2 13.2; VG -64.5 18.5; VI -64.8 18.0; AS -170.7 -14.3; CK -159.8 -21.2; CX 105.7 -10.5;
  FM 153.3 7.5; GU 144.8 13.4; KI -167.9 0.9; MH 170.3 7.0; MP 145.6 15.8; NF 167.9 -29.1;
  NR 166.9 -0.5; NU -169.9 -19.0; PF -144.8 -14.7; PN -128.3 -24.4; PW 134.4 7.3; TK -171.8 -9.2;
  TO -174.8 -20.4; TV 179.2 -8.5; UM 166.6 19.3; WF -177.3 -13.9; WS -172.2 -13.8; GF -53.0 4.0;
`

/** Shapes without a numeric code. */
const BY_NAME: Readonly<Record<string, string>> = {
  Kosovo: 'XK',
  'N. Cyprus': 'CY',
  Somaliland: 'SO',
}

const codeByNumber: ReadonlyMap<string, string> = new Map(
  NUMBERS.trim()
    .split(/\s+/)
    .map((text) => [text.slice(2), text.slice(0, 2)] as const),
)

/** Returns the alpha-2 code of a shape; '' = unknown. `number`: ISO 3166-1 numeric. */
export function codeOfShape(number: string | number | undefined, name: string): string {
  return codeByNumber.get(String(number ?? '').padStart(3, '0')) ?? BY_NAME[name] ?? ''
}

/** A country that is drawn as a dot. */
interface DottedCountry {
  readonly code: string
  /** Longitude and latitude. */
  readonly at: readonly [number, number]
}

export const DOTTED_COUNTRIES: readonly DottedCountry[] = DOTS.trim()
  .split(/;\s*/)
  .filter((text) => text !== '')
  .map((text) => {
    const [code = '', longitude, latitude] = text.split(' ')
    return { code, at: [Number(longitude), Number(latitude)] }
  })

const names = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'code' })

/** Returns the English name of a place of a map. */
export function nameOfPlace(code: string): string {
  if (code === 'unknown') return 'Unknown country'
  if (code === 'private') return 'Private addresses'
  return names.of(code) ?? code
}
