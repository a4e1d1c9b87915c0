import { createContext } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import { fullTime, offsetOf, shortTime, zonesFor } from './times.ts';
import { ago } from './words.ts';

/** The time zone of every time on the page. */
export const Zone = createContext('UTC');

const STORED = 'shale-time-zone';

/** @returns the zone that the viewer chose, by default the browser's; and a function that chooses another one. */
export function useZone(): readonly [zone: string, zones: readonly string[], choose: (zone: string) => void] {
  const zones = zonesFor(Intl.DateTimeFormat().resolvedOptions().timeZone);
  const [zone, setZone] = useState(() => {
    const stored = localStorage.getItem(STORED) ?? '';
    return zones.includes(stored) ? stored : (zones[0] ?? 'UTC');
  });
  const choose = (next: string) => {
    localStorage.setItem(STORED, next);
    setZone(next);
  };
  return [zone, zones, choose];
}

/** The choice of the time zone. */
export function ZoneChoice({
  zone,
  zones,
  onChoose,
}: {
  readonly zone: string;
  readonly zones: readonly string[];
  readonly onChoose: (zone: string) => void;
}) {
  const label = (each: string) => {
    const offset = offsetOf(each, Date.now());
    return each === offset ? each : `${each} (${offset})`;
  };
  if (zones.length === 1) return <span class="zone">Times in {zone}</span>;
  return (
    <fieldset class="zone">
      <legend class="visually-hidden">Time zone</legend>
      {zones.map((each) => (
        <label key={each}>
          <input type="radio" name="zone" checked={each === zone} onChange={() => onChoose(each)} />{' '}
          {label(each)}
        </label>
      ))}
    </fieldset>
  );
}

/** A time as its age; its tooltip has the time itself. */
export function Ago({ time, now }: { readonly time: number; readonly now: number }) {
  const zone = useContext(Zone);
  return (
    <time dateTime={new Date(time).toISOString()} title={fullTime(time, zone)}>
      {ago(time, now)}
    </time>
  );
}

/** @returns a function that formats a time in the viewer's zone. */
export function useShortTime(now: number): (time: number) => string {
  const zone = useContext(Zone);
  return (time) => shortTime(time, zone, now);
}

/** @param ms between two updates. @returns the current time, ms since the epoch, for a component that shows it. */
export function useNow(ms: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}
