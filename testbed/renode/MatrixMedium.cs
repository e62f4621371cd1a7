// A wireless medium whose links have a reception rate each. Loaded by Renode at run time:
//
//     include @MatrixMedium.cs
//     wireless SetReceptionMatrix "0 1 0.9, 1 0 0.85"
//     wireless SetPosition sysbus.radio 400 750 1    # z is the mote's index in the matrix
//
// The index stands in z because two motes may share a place, and because the place is all that Renode tells about sender and receiver.
using System;
using System.Collections.Generic;
using System.Globalization;

using Antmicro.Renode.Core;
using Antmicro.Renode.Exceptions;
using Antmicro.Renode.Peripherals.Wireless;

namespace Skerry
{
    public static class MatrixMediumExtensions
    {
        // Lists "sender receiver rate" triples, with commas between them; a link that is not listed does not exist.
        public static void SetReceptionMatrix(this WirelessMedium medium, string links)
        {
            medium.SetMediumFunction(new MatrixMedium(links));
        }
    }

    public class MatrixMedium : IMediumFunction
    {
        public MatrixMedium(string links)
        {
            foreach(var link in links.Split(new[] { ',' }, StringSplitOptions.RemoveEmptyEntries))
            {
                var parts = link.Split(new[] { ' ' }, StringSplitOptions.RemoveEmptyEntries);
                int from, to;
                double rate;
                if(parts.Length != 3 || !int.TryParse(parts[0], out from) || !int.TryParse(parts[1], out to)
                    || !double.TryParse(parts[2], NumberStyles.Float, CultureInfo.InvariantCulture, out rate) || rate < 0 || rate > 1)
                {
                    throw new RecoverableException("Reception matrix: '" + link.Trim() + "': expected 'sender receiver rate' with a rate of 0 to 1");
                }
                rates[Key(from, to)] = rate;
            }
        }

        public bool CanReach(Position from, Position to)
        {
            double rate;
            if(!rates.TryGetValue(Key((int)from.Z, (int)to.Z), out rate))
            {
                return false;
            }
            return rate >= 1 || EmulationManager.Instance.CurrentEmulation.RandomGenerator.NextDouble() < rate;
        }

        public bool CanTransmit(Position from)
        {
            return true;
        }

        public string FunctionName { get { return "reception_matrix"; } }

        private static long Key(int from, int to)
        {
            return ((long)from << 32) | (uint)to;
        }

        private readonly Dictionary<long, double> rates = new Dictionary<long, double>();
    }
}
