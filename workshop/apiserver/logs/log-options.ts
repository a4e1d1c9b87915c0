import { invalidField } from '../resources/strategies.ts';
import { badRequest, type Cause, invalid } from '../status.ts';

/** What of a container's log is asked for (core/v1 PodLogOptions). */
export interface LogOptions {
  /** New lines are sent as they come. */
  readonly follow: boolean;
  /** Each line begins with its time. */
  readonly timestamps: boolean;
  /** That of the container before its last restart. */
  readonly previous: boolean;
  readonly tailLines?: number;
  readonly since?: Date;
  readonly limitBytes?: number;
}

/** @throws StatusError 400, 422 for options that are none (core validation, ValidatePodLogOptions). */
export function parseLogOptions(query: URLSearchParams, now: Date): LogOptions {
  const tailLines = wholeNumber(query, 'tailLines');
  const limitBytes = wholeNumber(query, 'limitBytes');
  const sinceSeconds = wholeNumber(query, 'sinceSeconds');
  const sinceTime = query.get('sinceTime') ?? '';
  refuse([
    ...atLeast('tailLines', tailLines, 0),
    ...atLeast('limitBytes', limitBytes, 1),
    ...atLeast('sinceSeconds', sinceSeconds, 1),
    ...(sinceSeconds !== undefined && sinceTime !== ''
      ? [
          {
            reason: 'FieldValueForbidden',
            field: '',
            message: 'Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified',
          },
        ]
      : []),
  ]);
  const since =
    sinceSeconds === undefined ? timeOf(sinceTime) : new Date(now.getTime() - sinceSeconds * 1000);
  return {
    follow: query.get('follow') === 'true',
    timestamps: query.get('timestamps') === 'true',
    previous: query.get('previous') === 'true',
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(limitBytes === undefined ? {} : { limitBytes }),
    ...(since === undefined ? {} : { since }),
  };
}

function wholeNumber(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  if (/^-?\d+$/.test(text)) return Number(text);
  throw badRequest(`${name}: ${JSON.stringify(text)} is no whole number`);
}

function timeOf(text: string): Date | undefined {
  if (text === '') return undefined;
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) throw badRequest(`sinceTime: ${JSON.stringify(text)} is no time`);
  return time;
}

function atLeast(field: string, value: number | undefined, least: number): readonly Cause[] {
  if (value === undefined || value >= least) return [];
  const why = least === 0 ? 'must be greater than or equal to 0' : 'must be greater than 0';
  return [invalidField(field, value, why)];
}

function refuse(problems: readonly Cause[]): void {
  if (problems.length > 0) throw invalid({ group: '', kind: 'PodLogOptions' }, '', problems);
}
