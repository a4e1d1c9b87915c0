import { useEffect, useState } from 'preact/hooks';

/** @param ms between two updates. @returns the current time, ms since the epoch, for a component that shows it. */
export function useNow(ms: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}
