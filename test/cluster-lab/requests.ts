import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { AuditEvent } from '../../workshop/apiserver/http/request-listener.ts';

/** Of kube-apiserver's audit log, a line each (audit.k8s.io/v1, Event). */
const Event = z.object({
  verb: z.string(),
  user: z.object({ username: z.string() }),
  objectRef: z
    .object({
      apiGroup: z.string().default(''),
      resource: z.string().default(''),
      subresource: z.string().default(''),
      namespace: z.string().default(''),
      name: z.string().default(''),
    })
    .optional(),
  responseStatus: z.object({ code: z.number().default(0) }).default({ code: 0 }),
  requestReceivedTimestamp: z.string(),
});

/** A time in which the API server was not ready, ms since the epoch. */
export interface Outage {
  readonly from: number;
  readonly to: number;
}

/**
 * @param auditLog of kube-apiserver.
 * @param outage what came in it is left out: a server that starts refuses what it can't authorize yet.
 * @returns its requests for objects, as the sandbox's audit log has them.
 */
export async function readRequests(auditLog: string, outage: Outage): Promise<AuditEvent[]> {
  const lines = (await readFile(auditLog, 'utf8')).split('\n').filter((line) => line !== '');
  return lines.flatMap((line) => {
    const { verb, user, objectRef, responseStatus, requestReceivedTimestamp } = Event.parse(JSON.parse(line));
    const at = Date.parse(requestReceivedTimestamp);
    if (objectRef === undefined || (at >= outage.from && at <= outage.to)) return [];
    const { apiGroup: group, ...ref } = objectRef;
    return [{ user: user.username, verb, group, ...ref, status: responseStatus.code }];
  });
}
