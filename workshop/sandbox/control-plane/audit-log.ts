import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import type { AuditEvent } from '@shale/apiserver/http/request-listener.ts';

/**
 * Begins an audit log: JSON, a line each, of who asked for what and the status of the answer. Equal requests are told once:
 * it is there to show which rights are used, not how often.
 *
 * @param file written anew. @returns what to call for every request. @throws Error when the file can't be written.
 */
export function createAuditLog(file: string): (event: AuditEvent) => void {
  const told = new Set<string>();
  writeFileSync(file, '');
  return (event) => {
    const line = JSON.stringify(event);
    if (told.has(line)) return;
    told.add(line);
    // At once: the log is whole however the sandbox ends.
    appendFileSync(file, `${line}\n`);
  };
}

/** @returns the events of an audit log that createAuditLog began. */
export function readAuditLog(file: string): AuditEvent[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as AuditEvent);
}
