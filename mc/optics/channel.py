"""The loss of a shielded pair of wires, and what it takes to equalise it.

Wires of diameter d have the resistance of their skin, and a dielectric loses in proportion to the frequency, so a pair loses per
metre, in dB,

    α(f) = 8.686 · ( κ·2·R_s(f)/(πd) / (2Z) + π·f·√ε·tan δ / c ),      R_s = √(π·f·μ₀·ρ)

a term in √f and one in f; κ counts current that crowds towards the other wire and the shield. A connector with its paddle card
loses in √f. A cable reaches as far as its loss stays within the budget B of its standard: L = (B − 2·k·√f)/α(f).

A transceiver takes base + slope · dB per bit: more taps, more bits of a converter.

References:
    D. M. Pozar, "Microwave Engineering", 4th ed. (2012), section 2.7 (attenuation of a low-loss line: R/(2Z) + G·Z/2).

All arguments may be arrays that broadcast.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

# Resistivity of copper at 20 °C, ohm metres; the constant of the vacuum, H/m; the speed of light, m/s.
COPPER, MU_0, LIGHT = 1.68e-8, 4e-7 * math.pi, 299_792_458.0
_DB_PER_NEPER = 20 / math.log(10)


@dataclass(frozen=True)
class Channel:
    """A cable, and the transceivers that drive it.

    Attributes:
        diameter: of a wire, metres.
        impedance: differential, ohms.
        crowding: κ.
        permittivity: ε of the dielectric.
        loss_tangent: tan δ.
        connector: dB of one end, per root of gigahertz.
        base: joules per bit of a transceiver, without loss.
        slope: joules per bit and dB.
    """

    diameter: Any
    impedance: Any
    crowding: Any
    permittivity: Any
    loss_tangent: Any
    connector: Any
    base: Any
    slope: Any

    def conductor_loss(self, frequency: Any) -> Any:
        """Loss per metre, dB, that grow with the root of the frequency."""
        skin = np.sqrt(math.pi * np.asarray(frequency) * MU_0 * COPPER)
        return _DB_PER_NEPER * self.crowding * 2 * skin / (math.pi * self.diameter) / (2 * self.impedance)

    def dielectric_loss(self, frequency: Any) -> Any:
        """Loss per metre, dB, that grow with the frequency."""
        per_metre = math.pi * np.asarray(frequency) * np.sqrt(self.permittivity) * self.loss_tangent / LIGHT
        return _DB_PER_NEPER * per_metre

    def loss_per_metre(self, frequency: Any) -> Any:
        """Loss per metre of cable, dB."""
        return self.conductor_loss(frequency) + self.dielectric_loss(frequency)

    def assembly_loss(self, frequency: Any, length: Any) -> Any:
        """Loss of a cable with its connectors, dB."""
        return length * self.loss_per_metre(frequency) + self._connectors(frequency)

    def reach(self, frequency: Any, budget: Any) -> Any:
        """Metres of cable that lose the budget, connectors included; 0 where these alone do."""
        left = np.maximum(budget - self._connectors(frequency), 0.0)
        return left / self.loss_per_metre(frequency)

    def energy(self, loss: Any) -> Any:
        """Joules per bit of one transceiver that equalises so many dB."""
        return self.base + self.slope * loss

    def _connectors(self, frequency: Any) -> Any:
        return 2 * self.connector * np.sqrt(np.asarray(frequency) / 1e9)
