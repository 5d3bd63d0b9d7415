/** Latitude and longitude of the places that AWS names its regions after, in degrees. */
const REGIONS: ReadonlyMap<string, string> = new Map([
  ['af-south-1', '-33.92,18.42'],
  ['ap-east-1', '22.32,114.17'],
  ['ap-east-2', '25.03,121.57'],
  ['ap-northeast-1', '35.68,139.69'],
  ['ap-northeast-2', '37.57,126.98'],
  ['ap-northeast-3', '34.69,135.50'],
  ['ap-south-1', '19.08,72.88'],
  ['ap-south-2', '17.39,78.49'],
  ['ap-southeast-1', '1.35,103.82'],
  ['ap-southeast-2', '-33.87,151.21'],
  ['ap-southeast-3', '-6.21,106.85'],
  ['ap-southeast-4', '-37.81,144.96'],
  ['ap-southeast-5', '3.14,101.69'],
  ['ap-southeast-6', '-36.85,174.76'],
  ['ap-southeast-7', '13.76,100.50'],
  ['ca-central-1', '45.50,-73.57'],
  ['ca-west-1', '51.05,-114.07'],
  ['cn-north-1', '39.90,116.41'],
  ['cn-northwest-1', '37.51,105.20'],
  ['eu-central-1', '50.11,8.68'],
  ['eu-central-2', '47.38,8.54'],
  ['eu-north-1', '59.33,18.07'],
  ['eu-south-1', '45.46,9.19'],
  ['eu-south-2', '41.65,-0.89'],
  ['eu-west-1', '53.35,-6.26'],
  ['eu-west-2', '51.51,-0.13'],
  ['eu-west-3', '48.86,2.35'],
  ['eusc-de-east-1', '52.39,13.06'],
  ['il-central-1', '32.09,34.78'],
  ['me-central-1', '25.20,55.27'],
  ['me-south-1', '26.07,50.55'],
  ['mx-central-1', '20.59,-100.39'],
  ['sa-east-1', '-23.55,-46.63'],
  ['us-east-1', '38.95,-77.45'],
  ['us-east-2', '39.96,-83.00'],
  ['us-gov-east-1', '39.96,-83.00'],
  ['us-gov-west-1', '45.84,-119.70'],
  ['us-west-1', '37.35,-121.96'],
  ['us-west-2', '45.84,-119.70'],
])

export const AWS_REGIONS: readonly string[] = [...REGIONS.keys()]

/** Returns where a region of AWS is, as the property `location` has it; undefined = the region is unknown. */
export function locationOfAwsRegion(region: string): string | undefined {
  return REGIONS.get(region)
}
