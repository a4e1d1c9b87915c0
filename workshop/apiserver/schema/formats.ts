/** Formats that the API server checks (apiextensions, "supported formats"); any other is a note for readers. */
const FORMATS: Readonly<Record<string, (value: string) => boolean>> = {
  'date-time': (value) =>
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(value) &&
    !Number.isNaN(Date.parse(value)),
  date: (value) => /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value)),
  byte: (value) => /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(value),
  uuid: (value) => /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(value),
  ipv4: (value) => /^((25[0-5]|2[0-4]\d|1?\d?\d)(\.|$)){4}$/.test(value),
};

/** @returns what is wrong with a string of a format; undefined for nothing, or a format that isn't checked. */
export function formatProblem(format: string, value: string): string | undefined {
  const check = FORMATS[format];
  return check === undefined || check(value)
    ? undefined
    : `must be of type ${format}: ${JSON.stringify(value)}`;
}
